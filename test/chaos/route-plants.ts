import type { PlantRow } from './plant.ts';

/** Bugs of paid routes. */
export const routePlants: readonly PlantRow[] = [
  {
    name: 'answer-released-before-its-payment-is-settled',
    file: 'src/jobs/use-cases/pay-job.ts',
    find: `      const result = await settleStarted(context, request, job, asked.started, settling, asked.answer);
      if (asked.isPassedOn && result.kind !== 'accepted') context.unpaidStreams.note(payer);
      return result;`,
    replace: `      void settleStarted(context, request, job, asked.started, settling, asked.answer).catch(() => {});
      if (asked.answer) return { kind: 'passed_on', digest, answer: asked.answer };
      return { kind: 'pending', digest, replayed: false };`,
    caughtBy: ['answer_not_paid'],
    reachedBy: { having: 'routes', runs: 60 },
  },
  {
    name: 'settled-while-its-upstream-is-asked',
    file: 'src/payments/use-cases/resolve-settlement.ts',
    find: `    known.status === 'authorized' ||\n`,
    replace: ``,
    also: [
      {
        // makes the resolver of another gateway meet the request often
        file: 'src/payments/use-cases/resolve-settlement.ts',
        find: `open.ageSecs > underWaySecs(context.settings);`,
        replace: `open.ageSecs >= 0;`,
      },
      {
        file: 'src/jobs/use-cases/start-payment.ts',
        find: `      delayMs: firstLookMs + (askedUntil === undefined ? 0 : 1_000 * (askedUntil - nowSecs(context))),`,
        replace: `      delayMs: 0,`,
      },
    ],
    caughtBy: ['settled_unanswered'],
    reachedBy: { having: 'routes', runs: 100 },
  },
  {
    name: 'route-call-leased-by-two',
    file: 'migrations/functions/lease_calls.sql',
    find: `where call.call_id = p_call_id and (call.status = 'ready' or (call.status = 'leased' and call.due_at <= clock()))`,
    replace: `where call.call_id = p_call_id and call.status in ('ready', 'leased')`,
    caughtBy: ['asked_twice'],
    reachedBy: { having: 'routes', kind: 'twins', runs: 100 },
  },
  {
    name: 'upstream-asked-again-without-a-record',
    file: 'src/jobs/use-cases/routes/answer-first.ts',
    find: `  const { outcome } = await context.lane.append(
    { stream: digest, expect: state.version, events },
    { urgent: true },
  );
  if (outcome !== 'ok') return { kind: 'superseded' };
  return {
    started: { ...started, version: state.version + 1 },`,
    replace: `  return {
    started,`,
    also: [
      {
        // an attempt under way is taken for one whose process is gone
        file: 'src/jobs/use-cases/known-payment.ts',
        find: `nowSecs < (known.upstream?.endsAt ?? 0);`,
        replace: `nowSecs < 0;`,
      },
    ],
    caughtBy: ['asked_twice'],
    reachedBy: { having: 'routes', kind: 'twins', runs: 100 },
  },
  {
    name: 'every-answer-is-charged',
    file: 'src/base/config/routes.ts',
    find: `  return chargeOn.includes(String(status)) ||`,
    replace: `  return status > 0 || chargeOn.includes(String(status)) ||`,
    caughtBy: ['settled_unanswered'],
    reachedBy: { having: 'routes', runs: 60 },
  },
  {
    name: 'signed-amount-is-settled',
    file: 'src/payments/use-cases/settle-payment.ts',
    find: `facilitatorRequest(payment, digest, { ...beside, extensions }, atoms);`,
    replace: `facilitatorRequest(payment, digest, { ...beside, extensions }, payment.amount);`,
    caughtBy: ['moved_otherwise'],
    reachedBy: { kind: 'metered' },
  },
  {
    name: 'facilitators-word-settles-upto',
    file: 'src/payments/use-cases/settle-payment.ts',
    find: `confirm === 'required' || payment.transferMethod === 'upto'`,
    replace: `confirm === 'required'`,
    also: [
      {
        file: 'src/payments/use-cases/settle-payment.ts',
        find: `((confirm === 'after' || confirm === 'never') && payment.transferMethod !== 'upto')`,
        replace: `confirm === 'after' || confirm === 'never'`,
      },
    ],
    caughtBy: ['settled_by_word', 'answer_not_paid', 'call_without_transfer'],
    reachedBy: { kind: 'metered', runs: 40 },
  },
  {
    name: 'more-than-was-used-is-delivered',
    file: 'src/payments/rules/settlement.ts',
    find: `return payment.transferMethod === 'upto' && atoms > BigInt(answered?.used ?? 0);`,
    replace: `return payment.transferMethod === 'upto' && !answered && atoms > 0n;`,
    caughtBy: ['delivered_for_too_much'],
    reachedBy: { kind: 'metered', runs: 40 },
  },
];
