/** What tells a database from its copies, as far as PostgreSQL says it. */
export interface DatabaseIdentity {
  /** Decimal. A server that was made from a copy of the files has it too. Undefined if PostgreSQL refuses to tell it. */
  readonly systemIdentifier: string | undefined;
  /** The database's number (OID) in its server: one that was restored from a dump has another. */
  readonly oid: number;
  /** A new one begins when a standby is promoted, and when files are restored to a point in time. Undefined as above. */
  readonly timeline: number | undefined;
}

/** `other_timeline`: after a failover of the same database, or in a copy of it that was restored to a point in time. */
export type IdentityComparison = 'same' | 'other_timeline' | 'other_database';

export function compareIdentities(recorded: DatabaseIdentity, present: DatabaseIdentity): IdentityComparison {
  // a value that PostgreSQL gives only now, or gave only before, proves nothing
  if (recorded.systemIdentifier !== present.systemIdentifier || recorded.oid !== present.oid)
    return 'other_database';
  return recorded.timeline === present.timeline ? 'same' : 'other_timeline';
}

/** As in "system identifier 7…, database 16384, timeline 2". */
export function identityText({ systemIdentifier = 'unknown', oid, timeline }: DatabaseIdentity): string {
  return `system identifier ${systemIdentifier}, database ${oid}, timeline ${timeline ?? 'unknown'}`;
}
