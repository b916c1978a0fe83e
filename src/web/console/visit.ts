import type { ChatContext } from '../../chat/use-cases/context.ts';
import type { Config, ConsoleConfig } from '../../base/config/config.ts';
import type { OperatorLog } from '../../base/values/operator-log.ts';
import type { OperatorRole } from '../../base/values/operator-role.ts';
import type { Operator } from '../../accounts/use-cases/operators.ts';
import type { JobsContext } from '../../jobs/use-cases/context.ts';
import type { LogReader, OwnLogReaders } from '../../audit/use-cases/log/log-reader.ts';
import type { Filters } from '../pages/filters.ts';
import type { FormOptions, Handle, Take } from '../pages/requests.ts';
import type { PageHost, Visitor, VisitOf } from '../pages/visit.ts';
import type { Ledger } from '../../ledger/store/ledger.ts';
import type { ReplicaReads } from '../../ledger/use-cases/replicas.ts';

/** What the pages of the console are made from. */
export interface ConsoleSite extends PageHost {
  readonly console: ConsoleConfig;
  readonly ledger: Ledger;
  /** Pages may be read from a replica. */
  readonly reads: ReplicaReads;
  /** Undefined if no jobs are sold. */
  readonly jobs: (() => JobsContext) | undefined;
  /** Undefined if no models are sold. */
  readonly chat: (() => ChatContext) | undefined;
  /** Proves events of the ledger; undefined if it is not sealed. */
  readonly log: LogReader | undefined;
  /** The same over another pool. */
  readonly logOn: OwnLogReaders;
  /** The public keys of the log's present generation, as auditors are given them. */
  readonly logKeys: () => Promise<readonly string[]>;
  readonly hasCustomerPages: boolean;
  readonly isStopping: () => boolean;
  readonly logger: OperatorLog;
  /** What a reload would load, with a ConfigError for its mistakes; undefined if the gateway was started without a file. */
  readonly readConfig: (() => Promise<Config>) | undefined;
  /** Those that are offered here, in the order of the navigation. */
  readonly sections: readonly Section[];
}

/** One request of an operator: signed in, with a second factor, and with the role that the page or action needs. */
export interface OperatorVisit extends VisitOf<ConsoleSite> {
  readonly visitor: Visitor;
  readonly operator: Operator;
}

export interface ActionOptions extends FormOptions<OperatorVisit> {
  readonly role: OperatorRole;
  /** What events call it: lower case letters, digits and underscores. */
  readonly action: string;
  /** Of the form. If one cannot be read, nothing is recorded or done. */
  readonly filters?: Filters;
  /** What it is about, of the path's parameters and the form; left out of the record if it is not visible ASCII. */
  readonly subject?: (visit: OperatorVisit, fields: URLSearchParams) => string | undefined;
}

/** Adds pages and actions to the console. Each says which role it needs; no other place checks one. */
export interface Console {
  /**
   * A page, or data for one. Nothing may be changed by it. It may be read from a replica, up to a minute old: by `visit.site`, never by
   * the site that a section was registered with.
   */
  show(path: string, handle: Handle<OperatorVisit>, role?: OperatorRole, filters?: Filters): void;
  /** The same, always read from the primary: money or rights are decided on it, or its bytes are sent while they are read. */
  showPresent: Console['show'];
  /** A form that changes something: recorded as an event with the operator's name, then done. */
  act(path: string, options: ActionOptions, handle: Take<OperatorVisit>): void;
}

/** A part of the console: one directory, which registers its pages and actions. */
export interface Section {
  /** Of its first page, such as `/console/payments`; every other path of it begins with that. */
  readonly path: string;
  readonly label: string;
  /** Left out: it is always offered. */
  readonly isOffered?: (site: Pick<ConsoleSite, 'jobs' | 'chat'>) => boolean;
  /** The operators that see it. Default: all. */
  readonly role?: OperatorRole;
  register(console: Console, site: ConsoleSite): void;
}
