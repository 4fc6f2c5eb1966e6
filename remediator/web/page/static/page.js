"use strict";
// Keeps a page up to date. It works without, too: then it is as of the moment when it was loaded.
const root = document.querySelector("[data-events]");
const live = document.getElementById("live");
const SILENT = 45000; // milliseconds: three signs of life did not come
let cells = new Map();
let asOf = root.dataset.asOf, stale = root.dataset.stale, known = root.dataset.news, news = "";

// Says how fresh the page is; the same again would only be read aloud again.
function tell(text, old) {
  if (live.textContent !== text) live.textContent = text;
  live.classList.toggle("warn", old);
}

function tellAge(news) {
  if (stale) tell(stale, true);
  else tell(news ? "live: " + news : "live", false);
}

// What is shown is right at this moment, too, though nothing of it has changed: not read aloud.
function still(moment) {
  if (!moment || moment === asOf) return;
  asOf = moment;
  for (const each of document.querySelectorAll(".as-of")) each.textContent = moment;
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

function parsed(text, id) {
  return new DOMParser().parseFromString(text, "text/html").getElementById(id);
}

async function exchange(path, id) {
  const answer = await fetch(path, { headers: { Accept: "text/html" } });
  return answer.ok && swap(parsed(await answer.text(), id), id);
}

function named(each) {
  return each.getAttribute("href") || each.querySelector("b")?.textContent || each.tagName;
}

// Exchanges what differs of a part, and keeps open what was open, and the focus.
function swap(fresh, id) {
  const old = document.getElementById(id);
  if (!fresh || !old) return false;
  const focus = old.contains(document.activeElement) && named(document.activeElement);
  const open = new Map([...old.querySelectorAll("details")].map((each) => [named(each), each.open]));
  for (const each of fresh.querySelectorAll("details")) each.open = open.get(named(each)) ?? each.open;
  const [are, come] = [[...old.children], [...fresh.children]];
  if (are.length !== come.length) old.replaceChildren(...come);
  else are.forEach((each, at) => { if (!each.isEqualNode(come[at])) each.replaceWith(come[at]); });
  if (focus && !old.contains(document.activeElement)) {
    [...old.querySelectorAll("a, summary, pre")].find((each) => named(each) === focus)?.focus();
  }
  return true;
}

function lost() {
  tell("Not live: what you see is of " + asOf + ". This page has lost its connection and tries again.", true);
}

let shown = root.dataset.of, pause = () => {};

function listen(of) {
  const source = new EventSource(root.dataset.events + "?of=" + encodeURIComponent(of));
  let watch = 0;
  pause = () => { clearTimeout(watch); source.close(); };
  const heard = () => {
    clearTimeout(watch);
    if (source.readyState === EventSource.CLOSED) return;
    watch = setTimeout(() => { pause(); lost(); listen("none"); }, SILENT);
  };
  const on = (name, act) => source.addEventListener(name, (event) => inTurn(async () => {
    heard();
    await act(JSON.parse(event.data));
    shown = event.lastEventId;
  }));
  source.onopen = () => { heard(); tellAge(""); };
  source.addEventListener("alive", (event) => {
    heard();
    inTurn(() => still(JSON.parse(event.data).asOf));
  });
  on("changed", async (change) => {
    showAll(change);
    const names = Object.entries(change.nodes).slice(0, 3).map(([name, letter]) => name + " " + change.words[letter]);
    tellAge(names.join("; "));
    await exchange("/now", "now");
  });
  on("other", async (change) => {  // other nodes, or what this page shows is not known
    if (await exchange("/", "racks")) index();
    showAll(change);  // the racks may be those of another replica, which knows less
    tellAge("");
    await exchange("/now", "now");
  });
  on("page", (page) => {  // of one node, or of one case
    const fresh = parsed(page, "one").dataset;
    ({ asOf, stale } = fresh);
    swap(parsed(page, "now"), "now");
    if (fresh.news !== known) news = known = fresh.news;  // what has only grown older is not read aloud again
    tellAge(news);
  });
  on("gone", () => {
    document.querySelector("#now .state")?.remove();  // it is in none
    stale = root.dataset.name + " is not here any more: what you see is of " + asOf + ".";
    tellAge("");
  });
  source.onerror = () => {
    clearTimeout(watch);
    lost();
    if (source.readyState === EventSource.CLOSED) watch = setTimeout(() => listen("none"), 30000);
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

// A browser keeps few connections to one place: tabs that nobody looks at hold none.
function look() {
  pause();
  if (document.hidden) tell(stale || "as of " + asOf, Boolean(stale));
  else listen(shown);
}
document.addEventListener("visibilitychange", look);

index();
look();
