#!/bin/sh
# Plays the demo's session in a folder of its own, and asks its log whose doing the prompts were. For `make run`.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

asks() { # what it is about, and the command
  printf '\n# %s\n$ foreword' "$1"
  shift
  for word in "$@"; do
    case $word in *' '*) printf ' "%s"' "$word" ;; *) printf ' %s' "$word" ;; esac
  done
  printf '\n'
  foreword "$@"
}

printf '\n$ foreword demo    # in a temporary folder, removed afterwards\n'
foreword demo
asks "Who says so, and since when?" explain last "in two sentences"
asks "Why had the model no refund tool in step 7?" explain last@7 --missing refund
asks "What changed from step 6 to step 7?" diff last@7
asks "What did each change cost of the provider's cache?" cache last
asks "What does the prompt cost, and whom?" tokens last@7 --budget 400
asks "Which requests said that the desk is open until six?" log find --text 18:00 --section refunds:desk
asks "What is wrong with the prompts?" lint last
asks "What would go if a customer wants to be forgotten?" log erase --match 4711 --dry-run
