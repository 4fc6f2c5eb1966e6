"use strict";
// Keeps the page of the fleet up to date. It works without, too: then it is as of the moment when it was loaded.
const fleet = document.getElementById("fleet");
const live = document.getElementById("live");
const SILENT = 45000; // milliseconds: three signs of life did not come
let cells = new Map();
let asOf = fleet.dataset.asOf, stale = fleet.dataset.stale;

// Says how fresh the page is; the same again would only be read aloud again.
function tell(text, old) {
  if (live.textContent !== text) live.textContent = text;
  live.classList.toggle("warn", old);
}

function tellAge(news) {
  if (stale) tell(stale, true);
  else tell(news ? "live: " + news : "live", false);
}

function index() {
  cells = new Map([...document.querySelectorAll("#racks a.cell")].map((cell) => [cell.getAttribute("href"), cell]));
}

function show(name, letter, word) {
  const cell = cells.get("/nodes/" + encodeURIComponent(name));
  if (!cell) return;
  cell.className = "cell " + letter;
  cell.textContent = letter;
  cell.setAttribute("aria-label", name + ", " + word);
  if (letter !== "S") cell.removeAttribute("tabindex");
}

function showAll(change) {
  asOf = change.asOf;
  stale = change.stale;
  for (const [name, letter] of Object.entries(change.nodes)) show(name, letter, change.words[letter]);
  for (const [rack, counts] of Object.entries(change.racks)) {
    const text = document.querySelector('[data-rack="' + CSS.escape(rack) + '"]');
    if (text) text.textContent = counts;
  }
}

// One event after the other: what is loaded for one is no older than what the next one says.
let turn = Promise.resolve();
function inTurn(act) {
  turn = turn.then(act).catch(() => {});
}

// Exchanges a part, and keeps open what was open, and the focus.
async function exchange(path, id) {
  const answer = await fetch(path, { headers: { Accept: "text/html" } });
  if (!answer.ok) return false;
  const fresh = new DOMParser().parseFromString(await answer.text(), "text/html").getElementById(id);
  const old = document.getElementById(id);
  if (!fresh || !old) return false;
  const focus = document.activeElement && old.contains(document.activeElement) && document.activeElement.getAttribute("href");
  const open = new Map([...old.querySelectorAll("details")].map((each) => [each.querySelector("b").textContent, each.open]));
  for (const each of fresh.querySelectorAll("details")) {
    const known = open.get(each.querySelector("b").textContent);
    if (known !== undefined) each.open = known;
  }
  old.replaceWith(fresh);
  if (focus) [...fresh.querySelectorAll("a")].find((link) => link.getAttribute("href") === focus)?.focus();
  return fresh;
}

function lost() {
  tell("Not live: what you see is of " + asOf + ". This page has lost its connection and tries again.", true);
}

function listen(of) {
  const source = new EventSource("/events?of=" + encodeURIComponent(of));
  let watch = 0;
  const heard = () => {
    clearTimeout(watch);
    watch = setTimeout(() => { source.close(); lost(); listen("none"); }, SILENT);
  };
  source.onopen = () => { heard(); tellAge(""); };
  source.addEventListener("alive", heard);
  source.addEventListener("changed", (event) => inTurn(async () => {
    heard();
    const change = JSON.parse(event.data);
    showAll(change);
    const names = Object.entries(change.nodes).slice(0, 3).map(([name, letter]) => name + " " + change.words[letter]);
    tellAge(names.join("; "));
    await exchange("/now", "now");
  }));
  source.addEventListener("other", (event) => inTurn(async () => {  // other nodes, or what this page shows is not known
    if (await exchange("/", "racks")) index();
    heard();
    showAll(JSON.parse(event.data));  // the racks may be those of another replica, which knows less
    tellAge("");
    await exchange("/now", "now");
  }));
  source.onerror = () => {
    clearTimeout(watch);
    lost();
    if (source.readyState === EventSource.CLOSED) setTimeout(() => listen("none"), 30000);
  };
}

// Arrows move between the nodes of a rack: by Tab only those are reached that are not in service.
document.addEventListener("keydown", (event) => {
  const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
  const cell = document.activeElement;
  if (!step || !cell || !cell.matches("#racks a.cell")) return;
  const beside = [...cell.parentElement.querySelectorAll("a.cell")];
  beside[beside.indexOf(cell) + step]?.focus();
  event.preventDefault();
});

// What a pointer rests on says what it is.
document.addEventListener("mouseover", (event) => {
  if (event.target.matches("#racks a.cell")) event.target.title = event.target.getAttribute("aria-label");
});

index();
listen(fleet.dataset.of);
