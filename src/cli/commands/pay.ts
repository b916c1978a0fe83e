import { parseArgs } from 'node:util';
import { payForOneJob } from '../../devnet/client.ts';
import { readDescription } from '../../devnet/description.ts';
import { parseJobId } from '../../domain/payments/job.ts';
import type { Hex } from '../../domain/values/primitives.ts';
import { fail, say } from '../terminal.ts';

export async function run(args: readonly string[]): Promise<number> {
  const { values, positionals } = parseArgs({
    args: [...args],
    allowPositionals: true,
    options: { dir: { type: 'string', default: '.tollbook' } },
  });
  const [service = '', index = '', body] = positionals;
  const job = parseJobId(service, index);
  if (!job || body === undefined) {
    fail("what shall be paid for? npm run pay -- SERVICE JOB 'BODY'");
    return 64;
  }
  const devnet = await readDescription(values.dir);
  const { result } = await payForOneJob({
    gatewayUrl: devnet.gateway_url,
    privateKey: devnet.payer_private_key as Hex,
    ...job,
    body,
    onStep: say,
  });
  say(`result: ${result.toString('utf8')}`);
  return 0;
}
