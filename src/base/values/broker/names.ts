/** The names on a broker, all derived from one: gateways and runners have to agree about nothing else. */
export interface BrokerNames {
  /** The stream of the calls, a subject for each runner, service and job. */
  readonly callStream: string;
  readonly resultStream: string;
  readonly everyCall: string;
  readonly everyResult: string;
  /** Where the gateways together read the results. */
  readonly resultConsumer: string;
  callSubject(runner: string, serviceId: number, jobIndex: number): string;
  /** All calls of one runner, whose name is also that of its consumer. */
  callsOf(runner: string): string;
  resultSubject(runner: string): string;
  /** Where a runner asks for leases. */
  leaseSubject(runner: string): string;
}

/** What a broker's names may be made of: the dot separates the parts of a subject. */
export const brokerName = /^[A-Za-z0-9_-]{1,64}$/;

export function brokerNames(name: string): BrokerNames {
  return {
    callStream: `${name}-calls`,
    resultStream: `${name}-results`,
    everyCall: `${name}.calls.>`,
    everyResult: `${name}.results.*`,
    resultConsumer: 'gateways',
    callSubject: (runner, serviceId, jobIndex) => `${name}.calls.${runner}.${serviceId}.${jobIndex}`,
    callsOf: (runner) => `${name}.calls.${runner}.>`,
    resultSubject: (runner) => `${name}.results.${runner}`,
    leaseSubject: (runner) => `${name}.leases.${runner}`,
  };
}

/** The most that a message has in addition to the body of a call or result: its headers, or its facts. */
export const messageOverheadBytes = 16_384;
