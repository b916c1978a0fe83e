/** How a process shows that it runs, and when it counts as gone. */
export interface Presence {
  /** Without a heartbeat for so long, a process counts as gone and others finish its work. */
  readonly silentSecs: number;
  readonly heartbeatMs: number;
}

/** The same for every process on one ledger: holds and spends of a process that is gone are taken over. */
export const presence: Presence = { silentSecs: 15, heartbeatMs: 3_000 };
