/** Where the gateway reports to its operator. Fields hold ids and machine-readable codes, never secrets. */
export interface OperatorLog {
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
}
