/** A state that the operator is alerted about. */
export interface AlertMessage {
  /** The same each time this message is sent: visible ASCII without dots, at most 200 characters. */
  readonly id: string;
  readonly kind: string;
  /** What it is about; empty if the kind says all. */
  readonly subject: string;
  readonly status: 'firing' | 'resolved';
  /** Sentences for a person. */
  readonly text: string;
  readonly details: object;
  readonly since: Date;
  /** When the message was written. */
  readonly at: Date;
}
