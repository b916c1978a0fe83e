import { onTestFinished } from 'vitest';
import {
  type CallReport,
  createRunner,
  type Handler,
  job,
  type PollOptions,
  type Runner,
  type RunnerError,
  type RunnerOptions,
} from '../../src/runner/index.ts';
import { type FakeGateway, type FakeGatewayOptions, leaseToken, startFakeGateway } from './fake-gateway.ts';

export interface Polling {
  readonly gateway: FakeGateway;
  readonly runner: Runner;
  readonly errors: RunnerError[];
  readonly calls: CallReport[];
  readonly polled: Promise<void>;
}

export async function fakeGateway(options?: FakeGatewayOptions): Promise<FakeGateway> {
  const gateway = await startFakeGateway(options);
  onTestFinished(() => gateway.close());
  return gateway;
}

/** A runner of one job that polls; both end with the test. */
export function polling(
  gateway: FakeGateway,
  handler: Handler,
  options: Partial<RunnerOptions> & { poll?: Partial<PollOptions> } = {},
): Polling {
  const errors: RunnerError[] = [];
  const calls: CallReport[] = [];
  const runner = createRunner({
    jobs: [job({ serviceId: 1, jobIndex: 0, on: { x402: handler } })],
    onError: (error) => errors.push(error),
    onCall: (report) => calls.push(report),
    ...options,
  });
  const polled = runner.poll({ gatewayUrl: gateway.url, token: leaseToken, ...options.poll });
  polled.catch(() => {});
  onTestFinished(() => runner.stop({ graceMs: 0 }));
  return { gateway, runner, errors, calls, polled };
}

/** How many requests had a path with this ending. */
export function requestCount(gateway: FakeGateway, verb: string): number {
  return gateway.requests.filter(({ path }) => path.endsWith(verb)).length;
}
