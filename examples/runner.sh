#!/bin/bash
# A runner in shell, with curl, jq and base64: leases one call at a time and runs a command for it.
#   GATEWAY_URL=https://gateway.example RUNNER_TOKEN=… runner.sh 'wc -w'
# The command gets the body on its standard input, and CALL_ID, ATTEMPT, SERVICE_ID, JOB_INDEX, CONTENT_TYPE and IDEMPOTENCY_KEY in its
# environment; what it prints is the result, of the type RESULT_TYPE. Exit code 0 completes the call, 65 refuses it for good, any other
# has it delivered again. The folder RESULTS keeps results, so that a call that is delivered again is not run again.
# SIGTERM and SIGINT: the running call is finished, then the runner ends; a second one ends it immediately.
set -u
command=${1:?the command that does the work}
: "${GATEWAY_URL:?}" "${RUNNER_TOKEN:?}" "${RESULT_TYPE:=text/plain; charset=utf-8}" "${LEASE_SECS:=60}" "${WAIT_SECS:=20}"
umask 077
work=$(mktemp -d)
: "${RESULTS:=$work/results}"
mkdir -p "$RESULTS"
# in a file, since every user of the machine can read the arguments of a command
printf 'authorization: Bearer %s\ncontent-type: application/json\n' "$RUNNER_TOKEN" > "$work/headers"
unset RUNNER_TOKEN # the command does not get it

stopping='' polling='' running=''
stop() {
  # a second signal ends it immediately; one that comes with the first, as from `timeout`, is the same
  if [ -n "$stopping" ]; then
    if [ "$SECONDS" -gt $((stopping + 1)) ]; then exit 1; else return; fi
  fi
  stopping=$SECONDS
  if [ -n "$polling" ]; then kill "$polling" 2> /dev/null; fi
}
end_command() { if [ -n "$running" ]; then kill -KILL -- "-$running"; fi; }
trap stop TERM INT
trap 'end_command; rm -rf "$work"' EXIT

# post PATH FILE SECS, in a subshell: prints the status, 000 where there was no answer; the answer is in answer.json
post() {
  rm -f "$work/answer.head" "$work/answer.json"
  exec curl -s -o "$work/answer.json" -D "$work/answer.head" -w '%{http_code}' -m "$3" \
    -H "@$work/headers" --data-binary "@$work/$2" "${GATEWAY_URL%/}$1"
}

# whether a later answer may be another one: after none, 429, 503, or a proxy's 404 while a gateway is replaced
may_pass() { case $1 in 200 | 400 | 401 | 403 | 409 | 413 | 422) return 1 ;; esac; }

# later FAILURES: waits 1, 2, 4 … 30 seconds, or as long as the gateway says, at most 60; a signal ends the wait
later() {
  local secs=$((1 << ($1 < 5 ? $1 : 5))) said
  said=$(sed -n 's/^[Rr]etry-[Aa]fter: *\([0-9]\{1,4\}\)[^0-9]*$/\1/p' "$work/answer.head" 2> /dev/null | tail -1)
  said=$((10#${said:-0}))
  secs=$((said > secs ? said : secs > 30 ? 30 : secs))
  sleep $((secs > 60 ? 60 : secs)) &
  wait $!
}

# report END: posts report.json until the gateway has answered, with $status
report() {
  local failures=0
  until status=$(post "/runner/calls/$CALL_ID/$1" report.json 60); ! may_pass "$status"; do
    later $((failures++))
  done
}

# fail WORDS RETRY
fail() {
  jq -n --arg lease_id "$lease_id" --arg error "$1" --argjson retry "$2" '$ARGS.named' > "$work/report.json"
  report fail
}

# runs the command and extends the lease meanwhile; its exit code, or "lost", is in $code
run_command() {
  local next=$((SECONDS + LEASE_SECS / 3))
  # its own process group, which ignores these signals: it is finished also if they go to every process
  set -m
  (trap '' TERM INT; exec sh -c "$command") < "$work/body" > "$kept.part" 2> "$work/words" &
  running=$!
  set +m
  while kill -0 "$running" 2> /dev/null; do
    sleep 0.2
    if [ "$SECONDS" -lt "$next" ]; then continue; fi
    status=$(post "/runner/calls/$CALL_ID/extend" lease.json 10)
    next=$((SECONDS + LEASE_SECS / 3))
    if may_pass "$status"; then
      next=$((SECONDS + 2))
    elif [ "$status" != 200 ]; then
      end_command
      code=lost
    fi
  done
  wait "$running"
  code=${code:-$?} running=''
}

# of leased.json
serve_call() {
  local lease_id origin kept code='' of='.calls[0]'
  read -r CALL_ID lease_id ATTEMPT SERVICE_ID JOB_INDEX IDEMPOTENCY_KEY origin < <(jq -r "$of"' |
    [.call_id, .lease_id, .attempt, .service_id, .job_index, .metadata["X-NET-IDEMPOTENCY-KEY"], .metadata["X-NET-TRIGGER"]] |
    map(tostring) | join(" ")' "$work/leased.json")
  CONTENT_TYPE=$(jq -r "$of.content_type // empty" "$work/leased.json")
  export CALL_ID ATTEMPT SERVICE_ID JOB_INDEX IDEMPOTENCY_KEY CONTENT_TYPE
  jq -n --arg lease_id "$lease_id" --argjson lease_secs "$LEASE_SECS" '$ARGS.named' > "$work/lease.json"
  kept="$RESULTS/$IDEMPOTENCY_KEY"
  if ! [[ $IDEMPOTENCY_KEY =~ ^0x[0-9a-f]{64}$ && $origin = x402 ]]; then
    fail "trigger_not_wired: only calls by x402 run here, not by $origin" false
    echo "call $CALL_ID: not run, $status" >&2
    return
  fi
  if ! [ -f "$kept" ]; then
    jq -j "$of.body_base64" "$work/leased.json" | base64 -d > "$work/body"
    run_command
    if [ "$code" = 0 ]; then mv "$kept.part" "$kept"; else rm -f "$kept.part"; fi
  fi
  if [ -f "$kept" ]; then
    base64 < "$kept" | tr -d '\n' > "$work/result"
    jq -n --arg lease_id "$lease_id" --arg type "$RESULT_TYPE" --rawfile body "$work/result" \
      '{$lease_id, result: {content_type: $type, body_base64: $body}}' > "$work/report.json"
    report complete
    case $status in 400 | 413 | 422) fail "the gateway refused the result: $status" false ;; esac
  elif [ "$code" != lost ]; then
    fail "exit code $code: $(head -c 400 "$work/words" | tr -c '[:print:]' ' ')" "$(if [ "$code" = 65 ]; then echo false; else echo true; fi)"
  fi
  echo "call $CALL_ID: exit code ${code:-known}, $status" >&2
}

jq -n --argjson lease_secs "$LEASE_SECS" --argjson wait_secs "$WAIT_SECS" '$ARGS.named + {max: 1}' > "$work/ask.json"
echo "leasing calls from $GATEWAY_URL" >&2
failures=0
while [ -z "$stopping" ]; do
  post /runner/leases ask.json $((WAIT_SECS + 10)) > "$work/status" &
  polling=$!
  # a signal that came before: the gateway takes back calls of a lease request that has no client
  if [ -n "$stopping" ]; then kill "$polling" 2> /dev/null; fi
  while kill -0 "$polling" 2> /dev/null; do wait "$polling"; done
  polling='' status=$(cat "$work/status")
  if [ "$status" = 200 ]; then
    failures=0
    mv "$work/answer.json" "$work/leased.json"
    if [ "$(jq '.calls | length' "$work/leased.json")" != 0 ]; then serve_call; fi
  elif [ -n "$stopping" ]; then
    break
  elif may_pass "$status"; then
    echo "the gateway gave no call: $status" >&2
    later $((failures++))
  else
    echo "the gateway refuses this runner: $status $(head -c 300 "$work/answer.json")" >&2
    exit 1
  fi
done
echo 'stopped: no call is left' >&2
