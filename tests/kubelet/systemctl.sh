#!/bin/sh
# What a node has in place of systemd: every service is up, and has another process after each restart. What it was asked
# is noted in FOLDER, that of the node. It takes a reboot and does nothing: who reads the note plays it.
asked=FOLDER/asked
echo "$*" >>"$asked"
case $1 in
show) printf 'LoadState=loaded\nActiveState=active\nMainPID=%s\nKillMode=process\n' "$((100 + $(grep -c ^restart "$asked")))" ;;
restart | reset-failed | reboot) ;;
*) echo "$0: $1 is not played here" >&2 && exit 1 ;;
esac
