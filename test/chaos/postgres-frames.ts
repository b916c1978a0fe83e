/** One message of PostgreSQL's protocol, whole. The first of a client has no type. */
export interface Frame {
  readonly type: string;
  readonly bytes: Buffer;
}

/** Cuts a stream of bytes into messages; what is left over waits for more. */
export function createFrameReader(side: 'client' | 'server'): (chunk: Buffer) => Frame[] {
  let rest: Buffer = Buffer.alloc(0);
  let isStartup = side === 'client';
  return (chunk) => {
    rest = rest.length === 0 ? chunk : Buffer.concat([rest, chunk]);
    const frames: Frame[] = [];
    for (;;) {
      const typeBytes = isStartup ? 0 : 1;
      if (rest.length < typeBytes + 4) return frames;
      const end = typeBytes + rest.readUInt32BE(typeBytes);
      if (rest.length < end) return frames;
      frames.push({ type: isStartup ? '' : String.fromCharCode(rest[0] ?? 0), bytes: rest.subarray(0, end) });
      rest = rest.subarray(end);
      isStartup = false;
    }
  };
}

/** The list of types in a batch that is written without deciding. */
const writtenTypes = /select tollbook\.append_uncontended\((?:[^,]+,){5}'([^']*)'/;

/** The types of the events that a simple query appends; undefined if it is not an append. */
export function appendedTypes({ type, bytes }: Frame): ReadonlySet<string> | undefined {
  if (type !== 'Q') return undefined;
  const text = bytes.toString('utf8');
  const [, written] = writtenTypes.exec(text) ?? [];
  if (written !== undefined) return new Set(written.match(/[a-z_]+/g));
  if (!text.includes('select tollbook.append(')) return undefined;
  return new Set([...text.matchAll(/"type":"([a-z_]+)"/g)].map(([, name = '']) => name));
}

/** The process that answers a connection, as the server names it. */
export function backendPid({ type, bytes }: Frame): number | undefined {
  return type === 'K' ? bytes.readUInt32BE(5) : undefined;
}

/** The error of a pooler that lost its server: whether the statement ran is unknown. */
export function lostServer(): Buffer {
  const fields = ['SFATAL', 'VFATAL', 'C08006', 'Mserver connection crashed'];
  const body = Buffer.from(`${fields.join('\0')}\0\0`, 'utf8');
  const head = Buffer.from('E....', 'latin1');
  head.writeUInt32BE(body.length + 4, 1);
  return Buffer.concat([head, body]);
}
