/** Whether a part works. */
export interface Check {
  readonly ok: boolean;
  /** What is wrong or worth knowing, without any text of a peer. */
  readonly detail?: string;
  /** RFC 3339: when it began to be so. */
  readonly since?: string;
}
