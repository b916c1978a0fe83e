import { expect, test } from 'vitest';
import { openLane } from '../../src/store/lane.ts';
import { readEvents, readStream } from '../../src/store/streams.ts';
import { readCounters } from '../../src/store/counters.ts';
import { createDatabase } from '../support/database.ts';
import { newStream, quoteIssued, randomHex32, refused, replayDenied } from '../support/events.ts';

test('a command is recorded in its stream, and its leaf is canonical JSON', async () => {
  const { url, db, asOwner } = await createDatabase();
  const lane = openLane({ url });
  const stream = randomHex32();
  const event = quoteIssued();
  const outcome = await lane.append({ stream, expect: 0, events: [event] });
  expect(outcome).toMatchObject({ outcome: 'ok', version: 1, seq: 1 });
  const { events } = await readStream(db, stream);
  expect(events).toMatchObject([{ ...event, seq: 1, stream, version: 1 }]);
  const { rows } = await asOwner((owner) => owner.query<{ leaf: Buffer }>('select leaf from tollbook.event'));
  console.log(rows[0]?.leaf.toString());
  await lane.close();
});
void [readEvents, readCounters, newStream, refused, replayDenied];
