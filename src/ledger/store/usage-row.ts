/** What the completions of an account used, or how much that changed. Counts as decimal strings; `cost` in micros. */
export interface UsageRow {
  readonly account_id: number;
  /** `YYYY-MM-DD`, UTC: of the admission. */
  readonly day: string;
  readonly model: string;
  /** 0 without a key. */
  readonly key_id: number;
  /** Completions that an upstream began to answer. */
  readonly requests: string;
  /** Completions of which nothing was delivered, and nothing charged. */
  readonly failed: string;
  readonly prompt_tokens: string;
  readonly completion_tokens: string;
  /** Of the prompts'. */
  readonly cached_tokens: string;
  readonly cost: string;
}
