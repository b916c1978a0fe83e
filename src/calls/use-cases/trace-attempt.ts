import { runIn, type StepEnd, type Tracing } from '../../base/values/tracing.ts';
import type { LeasedCall } from '../store/calls.ts';

/**
 * An attempt to deliver a call, as a span: the first one in the trace of the request that bought the call, each later one in a trace of
 * its own with a link to that request. `work` gets the call with the attempt's own span, for its runner.
 */
export function traceAttempt<T>(
  tracing: Tracing | undefined,
  runner: string,
  call: LeasedCall,
  work: (call: LeasedCall) => Promise<T>,
  endOf: (result: T) => StepEnd,
): Promise<T> {
  if (!tracing) return work(call);
  const attributes = {
    'tollbook.call_id': call.callId,
    'tollbook.service_id': call.serviceId,
    'tollbook.job_index': call.jobIndex,
    'tollbook.attempt': call.attempt,
    'tollbook.runner': runner,
  };
  const bought = call.traceparent;
  const origin = call.attempt === 1 ? { parent: bought } : { link: bought };
  const span = tracing.beginFrom({ name: 'deliver call', kind: 'client', attributes }, origin);
  return runIn(span, () => work({ ...call, traceparent: span.traceparent }), endOf);
}
