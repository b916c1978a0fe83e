import { devnetKeys } from '../../../devnet/accounts.ts';
import { type PayerOptions, payForOneJob, payForUrl, untilOffered } from '../../../devnet/client.ts';
import { readDescription } from '../../../devnet/description.ts';
import { approvePermit2 } from '../../../devnet/token.ts';
import { parseJobId } from '../../../base/values/job.ts';
import type { Address, Hex } from '../../../base/values/primitives.ts';
import { ArgumentError, readOptions } from '../../../base/terminal/arguments.ts';
import { type ExitCode, exitCodes } from '../../../base/terminal/exit-codes.ts';
import { say } from '../../../base/terminal/terminal.ts';
import { appCommands } from '../descriptions.ts';

const longestWaitSecs = 3_600;

export async function run(args: readonly string[]): Promise<ExitCode> {
  const { values, positionals } = readOptions(appCommands.pay, args);
  const [service = '', index = '', body] = positionals;
  if (positionals.length <= 2 && /^(?:https?:\/)?\//.test(service))
    return payForPath(service, positionals[1], values);
  const job = parseJobId(service, index);
  if (!job || body === undefined)
    throw new ArgumentError("what shall be paid for? npm run pay -- SERVICE JOB 'BODY', or a PATH or URL");
  const waitSecs = readWait(values['wait-secs']);
  const { gatewayUrl, privateKey } = await payerAt(values.gateway, values.dir);
  const method = await prepare(values);
  await untilOffered(gatewayUrl, job, waitSecs * 1_000);
  const { result } = await payForOneJob({ gatewayUrl, privateKey, ...method, ...job, body, onStep: say });
  say(`result: ${result.toString('utf8')}`);
  return exitCodes.done;
}

/** Pays for a GET, or with a body for a POST of JSON: of any address, or of a path that `npm start` sells. */
async function payForPath(
  target: string,
  json: string | undefined,
  values: {
    readonly dir: string;
    readonly gateway?: string | undefined;
    readonly 'wait-secs': string;
    readonly scheme?: string | undefined;
  },
): Promise<ExitCode> {
  if (values.gateway !== undefined || values['wait-secs'] !== '0')
    throw new ArgumentError('--gateway and --wait-secs are for jobs: leave them out, or give the whole URL');
  const url = target.startsWith('/') ? `${(await readDescription(values.dir)).routes_url}${target}` : target;
  if (!URL.canParse(url)) throw new ArgumentError(`${JSON.stringify(target)} is not a URL`);
  const answer = await payForUrl(url, devnetKeys.payer, say, { ...(await prepare(values)), json });
  say(
    answer.payment
      ? `${answer.status}: ${answer.payment.payer} paid in transaction ${answer.payment.transaction}`
      : answer.receiptUrl === undefined
        ? `${answer.status}, without a payment on record: the answer says whether anything was charged`
        : `${answer.status}: what it cost is taken after its end, as its receipt says: ${answer.receiptUrl}`,
  );
  say(answer.body.trimEnd());
  return answer.status < 400 ? exitCodes.done : exitCodes.notDone;
}

/** Permit2 moves only tokens of payers who have approved it: the payer signs that, and the devnet's facilitator submits it. */
async function prepare({
  scheme,
  dir,
}: {
  readonly scheme?: string | undefined;
  readonly dir: string;
}): Promise<PayerOptions> {
  if (scheme === undefined || scheme === 'eip3009') return { transferMethod: scheme };
  if (scheme !== 'permit2' && scheme !== 'upto')
    throw new ArgumentError('--scheme is eip3009, permit2 or upto');
  const { rpc_url: rpcUrl, chain_id: chainId, ...tokens } = await readDescription(dir);
  if (scheme === 'upto') {
    // the first token that is offered has no approval by signature
    await approvePermit2({ url: rpcUrl, chainId }, tokens.token as Address, devnetKeys.payer);
    say('the payer has approved Permit2 for its token');
  }
  const token = tokens.plain_token;
  if (token === undefined)
    throw new ArgumentError('this devnet has no token that is paid with by Permit2: start it again');
  return { transferMethod: scheme, rpcUrl };
}

/** Every devnet has the same payer, whose key is public. */
async function payerAt(
  gateway: string | undefined,
  dir: string,
): Promise<{ readonly gatewayUrl: string; readonly privateKey: Hex }> {
  if (gateway !== undefined) return { gatewayUrl: readUrl(gateway), privateKey: devnetKeys.payer };
  const devnet = await readDescription(dir);
  return { gatewayUrl: devnet.gateway_url, privateKey: devnet.payer_private_key as Hex };
}

function readUrl(text: string): string {
  if (/^https?:\/\/\S+$/.test(text) && URL.canParse(text)) return text.replace(/\/+$/, '');
  throw new ArgumentError('--gateway is a URL, such as http://127.0.0.1:8402');
}

function readWait(text: string): number {
  if (/^\d{1,4}$/.test(text) && Number(text) <= longestWaitSecs) return Number(text);
  throw new ArgumentError(`--wait-secs is a whole number from 0 to ${longestWaitSecs}`);
}
