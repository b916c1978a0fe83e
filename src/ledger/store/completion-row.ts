/** A completion as the list of an account has it. Tokens and cost are null until it has ended, and where it failed; `cost` in micros. */
export interface CompletionRow {
  readonly account_id: number;
  /** Of its admission. */
  readonly seq: number;
  /** RFC 3339. */
  readonly at: string;
  readonly chat_id: string;
  /** 0 without a key. */
  readonly key_id: number;
  readonly model: string;
  readonly status: 'running' | 'failed' | 'completed' | 'cut' | 'client_left' | 'recovered';
  readonly prompt_tokens: number | null;
  readonly completion_tokens: number | null;
  /** Of the prompt's. */
  readonly cached_tokens: number | null;
  readonly cost: string | null;
}
