/** How a process shows that it runs, and when others treat it as stopped. */
export interface Presence {
  /** After this time without a heartbeat, others treat a process as stopped and finish its work. */
  readonly silentSecs: number;
  readonly heartbeatMs: number;
}

/** The same for every process on one ledger: holds and spends of a stopped process are taken over. */
export const presence: Presence = { silentSecs: 15, heartbeatMs: 3_000 };
