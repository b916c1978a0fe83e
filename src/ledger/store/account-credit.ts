/** The movements of one account's credit by some events, or by all of them. Micros. */
export interface AccountCredit {
  readonly account_id: number;
  readonly name: string | null;
  readonly balance: string;
  readonly held: string;
  readonly granted: string;
  readonly topped_up: string;
  /** Without the top-ups that were reversed. */
  readonly captured: string;
  readonly expired: string;
  /** The last event that is included. */
  readonly last_seq: number;
}
