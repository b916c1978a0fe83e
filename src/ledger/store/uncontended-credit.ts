import type { Admission, CreditCommand, CreditDetail, CreditMove, LimitsLeft } from './credit-command.ts';
import type { EncodedEvent } from './lane-command.ts';
import { isPlain, joined, type UncontendedParts, uncontendedParts } from './uncontended-parts.ts';

type Settlement = Extract<CreditMove, { readonly op: 'settle' }>;

/**
 * The parts of a chat's step; undefined if it is always decided: a request that is only counted, a hold that is ended for another
 * process, and moves of credit outside chats.
 */
export function creditParts(
  { stream, events, admit, credit }: CreditCommand,
  encoded: readonly EncodedEvent[],
): UncontendedParts | undefined {
  const parts = uncontendedParts({ stream, events }, encoded, []);
  if (!parts || (!admit && !credit)) return parts;
  const admitted = admit && !admit.isRefused ? fieldsOfAdmission(admit) : undefined;
  const settled = credit?.op === 'settle' && !isForAnother(credit) ? fieldsOfSettlement(credit) : undefined;
  if (!!admitted === !!settled || !isPlain(admitted ?? [])) return undefined;
  // the chat's id is the first field of both
  const unique = [...parts.unique, joined(['chat', ...(admitted ?? settled ?? []).slice(0, 1)])];
  return { ...parts, admitted: admitted && joined(admitted), settled: settled && joined(settled), unique };
}

function isForAnother({ recovery, isUnstarted }: Settlement): boolean {
  return recovery !== undefined || isUnstarted === true;
}

/** In the order in which `tollbook.admit_uncontended` takes them. */
function fieldsOfAdmission(admit: Admission): string[] {
  const { chatId, processId, accountId = '', keyId = '', holdMicros, neededMicros, others = [] } = admit;
  const windows = [admit, ...others].flatMap(({ subject, perMinute, perDay = '' }) => [
    subject,
    String(perMinute),
    String(perDay),
  ]);
  const needed = neededMicros === undefined ? [] : [String(neededMicros)];
  return [chatId, processId, String(accountId), String(keyId), String(holdMicros), ...windows, ...needed];
}

function fieldsOfSettlement({ chatId, capturedMicros, releasedMicros }: Settlement): string[] {
  return [chatId, String(capturedMicros), String(releasedMicros)];
}

/** What an admission's answer says of its limits. */
export function detailOf(left: LimitsLeft): CreditDetail {
  const [remaining, resetMs, remainingToday, resetTodayMs, perMinute, perDay] = left;
  return {
    remaining,
    reset_ms: resetMs,
    remaining_today: remainingToday,
    reset_today_ms: resetTodayMs,
    per_minute: perMinute,
    per_day: perDay,
  };
}
