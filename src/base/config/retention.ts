import type { Report } from './report.ts';
import { type ConfigOf, readTable } from './table.ts';
import { wholeNumber } from './values.ts';

const maxDays = 36_500;
const days = (least: number) => wholeNumber(least, maxDays);

/** How long what is no part of the ledger is kept. The least lives are those of the database's function `least_life`. */
export const retentionShape = {
  /** From when a result was stored. */
  result_days: days(1).default(30),
  /** From when a body was sent; never before its call has ended. */
  body_hours: wholeNumber(1, 24 * maxDays).default(1),
  /** From when a paid request named its callback. */
  callback_days: days(1).default(30),
  /** Not the newest, nor those that an anchor has received or a report is about. */
  tree_head_days: days(30).default(30),
  /** Tasks of workers that could not be completed. */
  follow_up_days: days(30).default(30),
  /** From the end of a spend's authorization. */
  failed_spend_days: days(30).default(30),
  /** Request ids of credit: after it the same id would move credit again. */
  request_id_days: days(400).default(400),
  /** Of a user who signed up and never confirmed the address. */
  unconfirmed_user_days: days(1).default(30),
  rate_limit_days: days(1).default(2),
  /** From when a token or an API key ended. */
  ended_token_days: days(1).default(400),
  ended_key_days: days(1).default(400),
  /** From when the link ended. */
  sign_in_link_days: days(1).default(1),
  /** From when a condition was seen last. */
  alert_days: days(3).default(30),
  /** Of a file in `mail_dir` that no program has taken. */
  mail_days: days(1).default(7),
} as const;

export type RetentionConfig = ConfigOf<typeof retentionShape>;

/** Reads `[retention]`; undefined after a report. */
export function readRetention(raw: unknown, report: Report): RetentionConfig | undefined {
  return readTable(retentionShape, raw ?? {}, ['retention'], report).whole;
}
