#!/bin/sh
# Writes .env from .env.example: each variable without a value gets 32 random bytes. Never changes a file that is there.
set -eu
cd "$(dirname "$0")/../.."
umask 077
if [ -e .env ]; then
  echo '.env is there already, and nothing was changed. Its passwords belong to the database: keep it, or remove the database too.' >&2
  exit 1
fi
while IFS= read -r line; do
  case $line in
    [A-Z]*=) printf '%s%s\n' "$line" "$(od -An -N32 -tx1 /dev/urandom | tr -d ' \n')" ;;
    *) printf '%s\n' "$line" ;;
  esac
done < .env.example > .env.new
mv .env.new .env
echo 'wrote .env; `docker compose up --build` starts everything'
