import { by, type CommandDescription, flag, text, textOr, why } from '../../base/terminal/command.ts';

/** The options that say which dead letters a command means. */
export const choice = {
  service: text('ID', 'those of a service'),
  job: text('SERVICE/JOB', 'those of a job'),
  cause: text('CAUSE', 'those of a cause, as `tollbook calls dead --by-cause` shows it'),
  reason: text('REASON', 'those with a reason'),
  runner: text('NAME', 'those of a runner'),
  since: text('TIME', 'those that became dead letters since then'),
  before: text('TIME', 'those that became dead letters before then'),
};
const all = flag('all dead letters');
const aboutRunner = { forms: ['NAME'], options: { by }, notes: ['NAME as in the configuration'] } as const;

/** The commands of payments under way, calls, quotes and runners. */
export const jobCommands = {
  'auth-dry-run': {
    noDatabase: true,
    summary: 'signs a request as a caller and checks whether a restricted job would allow it',
    forms: ["SERVICE JOB 'BODY'"],
    options: {
      url: textOr('URL', 'http://127.0.0.1:8402', 'of the gateway'),
      'key-file': text('FILE', 'the key of the caller; default: TOLLBOOK_CALLER_KEY'),
      nonce: text('TEXT', 'of the request; default: a random one'),
      'ttl-secs': textOr('N', '300', 'how long the request is valid'),
      'content-type': textOr('TYPE', 'text/plain; charset=utf-8', 'of the body'),
    },
    notes: ['settles nothing and uses no nonce'],
    exits: { finding: 'the gateway would refuse the request' },
  },
  settlements: { isReading: true, summary: 'lists the payments with an unknown settlement' },
  'calls dead': {
    summary: 'lists the dead letters: calls that could not be delivered',
    options: {
      'by-cause': flag(
        'groups them by reason, status and words, without the numbers and ids in these;\nthe other options go with it',
      ),
      ...choice,
    },
  },
  'calls requeue': {
    summary: 'queues dead-lettered calls for delivery again',
    forms: ['CALL_ID', '--all', '--cause CAUSE'],
    options: { ...choice, all, 'dry-run': flag('prints how many and changes nothing') },
    notes: [
      'one call, all, or those that match every option; calls whose payment was refunded are skipped, with a line each',
    ],
  },
  'calls discard': {
    summary: 'gives calls up: they are not delivered any more, and their refunds are due',
    forms: ["CALL_ID --why 'TEXT'", "--all --why 'TEXT'", "--cause CAUSE --why 'TEXT'"],
    options: {
      ...choice,
      all,
      'dry-run': flag('says how many dead letters are meant, and changes nothing'),
      count: text('N', 'confirms that number'),
      why,
      by,
    },
    notes: [
      'one call, a dead letter or one that waits; or all dead letters, or those that match every option',
    ],
  },
  'quotes revoke': {
    summary: 'ends the quotes that were issued before a time, in every gateway',
    forms: ['--before TIME'],
    options: { before: text('TIME', 'such as 2026-11-20T06:30:00Z'), by },
    notes: ['started payments continue'],
  },
  'runners pause': { summary: 'keeps calls back from a runner until it is resumed', ...aboutRunner },
  'runners resume': { summary: 'lets calls go to a paused runner again', ...aboutRunner },
} satisfies Readonly<Record<string, CommandDescription>>;
