import type { Schedule } from './schedule.ts';

/** The schedule as text, a line for each item. */
export function describeSchedule({
  strikes,
  databaseFaults,
  outages,
  turnover,
  reorgs,
  clockSteps,
  holdMs,
  configs,
  scenarios,
  hasCredit,
  hasRoutes,
  hasOperator,
}: Schedule): string[] {
  return [
    ...strikes.map(({ what, step, nth, ms }) => `${what} ${step}#${nth} (${ms} ms)`),
    ...databaseFaults.map(({ what, atMs }) => `${what} at ${atMs} ms`),
    ...outages.map(({ atMs, forMs }) => `no answer of the chain's node from ${atMs} ms for ${forMs} ms`),
    ...(turnover
      ? [`${turnover.kind}: backup at ${turnover.atMs} ms, ${turnover.forMs} ms later the other server`]
      : []),
    ...reorgs.map(
      ({ nth, depth, fates }) => `reorg of ${depth} blocks after payment ${nth}: ${fates.join(', ')}`,
    ),
    ...(holdMs > 0 ? [`runners hold each call for ${holdMs} ms`] : []),
    ...clockSteps.map(
      ({ atMs, forMs, bySecs, of }) =>
        `the clock of ${of === 'database' ? of : `gateway ${of + 1}`} is wrong by ${bySecs} s at ${atMs} ms for ${forMs} ms`,
    ),
    ...(hasCredit ? ['gateways serve chat and sell credit'] : []),
    ...(hasRoutes ? ['gateways sell routes'] : []),
    ...(hasOperator ? ['an operator refunds, and another one queues dead letters again'] : []),
    ...configs.map(
      ({ markupBps, quoteTtlSecs, confirm, hasQuoteKey }, index) =>
        `gateway ${index + 1}: markup ${markupBps}, quotes for ${quoteTtlSecs} s, confirm ${confirm}` +
        (hasQuoteKey ? ', with a quote key' : ''),
    ),
    ...scenarios.map(
      ({ id, atMs, kind, job, version, option, frontRun, bodyBytes }) =>
        `${id} at ${atMs} ms: ${kind}, ${job}, version ${version}, option ${option}, ${bodyBytes} bytes` +
        (frontRun ? `, front-run ${frontRun}` : ''),
    ),
  ];
}
