/** `@tollbook/runner`: write a runner, the program that does the work of paid jobs. */
export { createRunner, type Runner, type RunnerOptions } from './runner.ts';
export { type Handler, type Job, job, type JobOptions } from './job.ts';
export { Refuse, RetryLater, RunnerError, type RunnerErrorCode } from './errors.ts';
export { priced, type Result, type TypedResult } from './result.ts';
export type { CallFacts, JobCall, PaidCall, Trigger, TriggeredCall } from './call.ts';
export type { CallReport, Hooks } from './hooks.ts';
export type { Listening, ListenOptions } from './listen.ts';
export type { Progress, ReportProgress } from './progress.ts';
export type { PollOptions } from './poll.ts';
export type { BrokerConnection, BrokerMessage, BrokerStream } from './broker.ts';
export type { ConsumeOptions } from './consume.ts';
export type { PushAnswer, PushRequest } from './push.ts';
export { type CallToSign, signCall } from '../base/values/call-signature.ts';
