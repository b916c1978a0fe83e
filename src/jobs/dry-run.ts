import { decodePayment, type DecodedPayment } from '../domain/payments/decode-payment.ts';
import type { EventType } from '../domain/events/event.ts';
import { parseCaller } from '../domain/payments/caller-signature.ts';
import type { AuthMode } from '../domain/payments/job.ts';
import { isSignedByPayer, readSignedPayment } from '../domain/payments/payment.ts';
import type { Address } from '../domain/values/primitives.ts';
import { type RefusalCode, refusals } from '../domain/errors/refusal.ts';
import { isNonceUsed } from '../store/streams.ts';
import { askPermission, findDelegatedCaller, proveContractCaller } from './authorize-caller.ts';
import { findJob, type Job, type Restriction } from './catalog.ts';
import type { JobsContext } from './context.ts';
import { bindRequest, type BoundRequest, type JobRequest } from './job-request.ts';
import { requestStream } from './refuse.ts';

/** One thing that was looked at, and how it came out. */
export interface AuthCheck {
  readonly name: 'caller' | 'signature' | 'nonce' | 'permission';
  /** Why it failed; undefined where it passed. */
  readonly code: RefusalCode | undefined;
  readonly detail: string;
}

/** What the authorization of this request would come to. `code` is undefined where it would be allowed. */
export interface DryRun {
  readonly code: RefusalCode | undefined;
  readonly retryAfterSecs: number | undefined;
  readonly mode: Job['mode'] | undefined;
  readonly authMode: AuthMode | undefined;
  readonly caller: Address | undefined;
  /** True where nothing proves that the asker is this caller. */
  readonly isAsserted: boolean;
  readonly checks: readonly AuthCheck[];
}

/**
 * Runs the authorization of a job on a request as the paid flow would, and tells every step. Settles nothing, enqueues
 * nothing, uses no nonce up; is counted, within the request budget.
 */
export async function dryRun(context: JobsContext, incoming: JobRequest): Promise<DryRun> {
  const request = bindRequest(incoming);
  const job = request.job && findJob(context.catalog, request.job);
  const retryAfterSecs = context.budget.spent(request.askers);
  // charged before anything is asked: many at once must not all find the same room
  if (retryAfterSecs === undefined) context.budget.charge(request.askers);
  if (!job) return unmade('job_not_found', undefined);
  if (retryAfterSecs !== undefined) return { ...unmade('rate_limited', job), retryAfterSecs };
  const run = await runChecks(context, request, job);
  const event = {
    type: eventOf(run.code),
    data: {
      service_id: job.serviceId,
      job_index: job.jobIndex,
      ...(run.authMode ? { mode: run.authMode } : {}),
      ...(run.caller ? { caller: run.caller } : {}),
      ...(run.code ? { code: run.code } : {}),
    },
  };
  await context.lane.append({ stream: requestStream(request), events: [event] });
  return run;
}

function eventOf(code: RefusalCode | undefined): Extract<EventType, `dry_run_${string}`> {
  if (!code) return 'dry_run_allowed';
  return refusals[code].status >= 500 ? 'dry_run_error' : 'dry_run_denied';
}

function unmade(code: RefusalCode | undefined, job: Job | undefined): DryRun {
  return {
    code,
    retryAfterSecs: undefined,
    mode: job?.mode,
    authMode: job?.restriction?.authMode,
    caller: undefined,
    isAsserted: false,
    checks: [],
  };
}

async function runChecks(context: JobsContext, request: BoundRequest, job: Job): Promise<DryRun> {
  const { restriction } = job;
  if (!restriction) return unmade(job.mode === 'disabled' ? 'x402_disabled' : undefined, job);
  const run =
    restriction.authMode === 'payer_is_caller'
      ? await runPayer(context, request, job, restriction)
      : await runDelegated(context, request, job, restriction);
  // an operator tries before enabling: the checks ran, and the job is disabled all the same
  return job.mode === 'disabled' ? { ...run, code: 'x402_disabled' } : run;
}

async function runPayer(
  context: JobsContext,
  request: BoundRequest,
  job: Job,
  restriction: Restriction,
): Promise<DryRun> {
  const base = unmade(undefined, job);
  const payer = payerOf(request, job);
  if ('code' in payer) return { ...base, code: payer.code, checks: [failed('caller', payer.code)] };
  const { caller, isAsserted } = payer;
  const detail = isAsserted
    ? `${caller}, asserted by X-NET-CALLER: nothing proves it here`
    : `${caller} signed the payment`;
  const checks = [passed('caller', detail), await permissionCheck(context, job, restriction, caller)];
  return { ...base, caller, isAsserted, ...verdict(checks) };
}

/** The payer in the payment header, by its own signature; without a payment, whom X-NET-CALLER names. */
function payerOf(
  request: BoundRequest,
  job: Job,
): { readonly caller: Address; readonly isAsserted: boolean } | { readonly code: RefusalCode } {
  if (request.payment) {
    const decoded = decodePayment(request.payment.header, request.payment.x402Version);
    const payer = typeof decoded === 'object' && provenPayer(decoded, job);
    return payer ? { caller: payer, isAsserted: false } : { code: 'payment_invalid' };
  }
  const { caller: header } = request.callerHeaders;
  if (header === undefined) return { code: 'missing_caller' };
  const caller = parseCaller(header);
  return caller ? { caller, isAsserted: true } : { code: 'invalid_caller' };
}

function provenPayer(decoded: DecodedPayment, job: Job): Address | undefined {
  const option = job.options.find(
    ({ network, asset }) => network === decoded.network && (!decoded.terms || decoded.terms.asset === asset),
  );
  const payment = option && readSignedPayment(decoded, option);
  return payment && isSignedByPayer(payment) ? payment.payer : undefined;
}

async function runDelegated(
  context: JobsContext,
  request: BoundRequest,
  job: Job,
  restriction: Restriction,
): Promise<DryRun> {
  const base = unmade(undefined, job);
  const found = findDelegatedCaller(context, request, job);
  if (typeof found === 'string') return { ...base, ...verdict([failed('caller', found)]) };
  const { caller, claim } = found;
  const unproven = await proveContractCaller(context, restriction, request, job, found);
  const checks = [
    passed('caller', `${caller}, until ${new Date((claim?.expiry ?? 0) * 1_000).toISOString()}`),
    unproven ? failed('signature', unproven) : passed('signature', 'over this body, job, nonce and expiry'),
  ];
  // whether a nonce is used is told only to who holds the key
  if (unproven) return { ...base, caller, ...verdict(checks) };
  const used = claim && (await isNonceUsed(context.pool, caller, job, claim.nonce));
  checks.push(
    used ? failed('nonce', 'signature_replay') : passed('nonce', 'not used yet; this run uses it up neither'),
  );
  checks.push(await permissionCheck(context, job, restriction, caller));
  return { ...base, caller, ...verdict(checks) };
}

async function permissionCheck(
  context: JobsContext,
  job: Job,
  restriction: Restriction,
  caller: Address,
): Promise<AuthCheck> {
  const refused = await askPermission(context, restriction, job.serviceId, caller);
  return refused ? failed('permission', refused) : passed('permission', `${restriction.contract} permits it`);
}

function passed(name: AuthCheck['name'], detail: string): AuthCheck {
  return { name, code: undefined, detail };
}

function failed(name: AuthCheck['name'], code: RefusalCode): AuthCheck {
  return { name, code, detail: refusals[code].sentence };
}

/** The first check that failed decides, as it would in the paid flow. */
function verdict(checks: readonly AuthCheck[]): Pick<DryRun, 'code' | 'checks'> {
  return { code: checks.find(({ code }) => code !== undefined)?.code, checks };
}
