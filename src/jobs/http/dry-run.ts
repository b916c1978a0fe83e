import type { FastifyReply, FastifyRequest } from 'fastify';
import { parseJobId } from '../../base/values/job.ts';
import type { DryRun } from '../use-cases/dry-run.ts';
import { sendRefusal } from '../../ledger/http/errors.ts';

/**
 * A dry run as JSON: 200 if the call would be allowed, else the paid flow's status and code, with the same checks. Its 402
 * offers nothing: it is about the caller, not about money.
 */
export function sendDryRun(
  request: FastifyRequest<{ Params: { service_id: string; job_index: string } }>,
  reply: FastifyReply,
  { verdict, mode, isEnabled, authMode, caller, isAsserted, checks }: DryRun,
): FastifyReply {
  const job = parseJobId(request.params.service_id, request.params.job_index);
  const context = {
    allowed: verdict.kind === 'allowed',
    enabled: isEnabled,
    ...(mode ? { mode } : {}),
    ...(authMode ? { auth_mode: authMode } : {}),
    ...(caller ? { caller } : {}),
    ...(isAsserted ? { asserted: true } : {}),
    checks: checks.map(({ name, result, detail }) => ({
      name,
      passed: result.kind === 'passed',
      detail,
    })),
    ...(job ? { service_id: job.serviceId, job_index: job.jobIndex } : {}),
  };
  reply.header('cache-control', 'no-store');
  if (verdict.kind === 'allowed') return reply.send(context);
  const { code, retryAfterSecs } = verdict;
  return sendRefusal(request, reply, code, {
    context,
    ...(retryAfterSecs === undefined ? {} : { retryAfterSecs }),
  });
}
