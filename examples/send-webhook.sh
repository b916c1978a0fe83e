#!/usr/bin/env bash
# Sends its standard input as a signed webhook (Standard Webhooks), with bash, curl and openssl:
#   WEBHOOK_URL=http://127.0.0.1:8402/triggers/webhook/orders WEBHOOK_SECRET=whsec_… examples/send-webhook.sh order-1 < order.json
# The argument is the webhook's id: sent again with it, the same body gets the same answer and makes no second call.
set -euo pipefail
: "${WEBHOOK_URL:?}" "${WEBHOOK_SECRET:?}"
id=${1:?the id of the webhook} at=$(date +%s) body=$(mktemp)
trap 'rm -f "$body"' EXIT
cat > "$body"
case $WEBHOOK_SECRET in
  whsec_*) key=$(printf %s "${WEBHOOK_SECRET#whsec_}" | base64 -d | od -An -v -tx1 | tr -d ' \n') ;;
  *) key=$(printf %s "$WEBHOOK_SECRET" | od -An -v -tx1 | tr -d ' \n') ;;
esac
# other accounts of this machine see the key in the list of processes: sign in a program where they may not
signature=$({ printf '%s.%s.' "$id" "$at" && cat "$body"; } | openssl dgst -sha256 -mac HMAC -macopt "hexkey:$key" -binary | base64 -w0)
curl -sS --fail-with-body "$WEBHOOK_URL" -H 'content-type: application/json' \
  -H "webhook-id: $id" -H "webhook-timestamp: $at" -H "webhook-signature: v1,$signature" --data-binary "@$body"
