import { signCall } from '../../../base/values/call-signature.ts';
import { type CallFacts, callMetadata } from '../../../calls/use-cases/deliver-call.ts';
import { type Ledger, nowSecs } from '../../../ledger/store/ledger.ts';
import type { Header } from '../../rules/route-headers.ts';
import type { RouteOfRequest } from '../job-request.ts';

/** The client's headers, and in place of its payment what a runner gets: the metadata of the call, signed where the route has a token. */
export function callHeaders(
  ledger: Pick<Ledger, 'lane'>,
  { config, headers }: RouteOfRequest,
  call: CallFacts,
  body: Buffer,
): readonly Header[] {
  const metadata = callMetadata(call, config.maxResponseBytes);
  const { idempotencyKey: id } = call;
  const timestampSecs = nowSecs(ledger);
  const signature = config.tokens && signCall({ secret: config.tokens, id, timestampSecs, body, metadata });
  return [...headers, ...Object.entries<string>({ ...metadata, ...signature })];
}
