import { expect, test } from 'vitest';
import type { ListingState } from '../../../src/base/values/discovery/listing.ts';
import { listingConditions } from '../../../src/jobs/use-cases/conditions.ts';
import { listingStatus } from '../../../src/jobs/use-cases/listings.ts';
import { parse, minimal } from '../../base/config/support.ts';

const nowSecs = Math.floor(Date.now() / 1_000);
const hour = 3_600;
const plain = { isSold: true, discovery: {} };
/** Services 1 and 2 with two jobs each, and what may not be listed. */
const sold = [
  ['1/0', plain],
  ['1/1', plain],
  ['2/0', plain],
  ['2/1', plain],
  ['3/0', { ...plain, discovery: undefined }],
  ['4/0', { ...plain, isSold: false }],
] as const;
const found = (job: string) => ({
  key: `https://shop.example/x402/jobs/${job}`,
  listedAtSecs: nowSecs,
  soldAtSecs: nowSecs,
  misses: 0,
});
const missed = (job: string, misses = 2, forSecs = 3 * hour) => ({
  ...found(job),
  misses,
  missingSinceSecs: nowSecs - forSecs,
});

async function told(state: ListingState, clockOffsetMs = 0): Promise<string[]> {
  const discovery = '[discovery]\nurl = "https://facilitator.example/x402"';
  const { config } = await parse(`${minimal()}${discovery}`);
  const catalog = sold.map(([key, job]) => {
    const [serviceId, jobIndex] = key.split('/').map(Number);
    return [key, { ...job, serviceId, jobIndex }];
  });
  const context = {
    config,
    catalog: new Map(catalog as never),
    publicUrl: () => 'https://shop.example',
    listings: { value: { dueAtSecs: nowSecs, state }, ageSecs: 0, learn: () => {} },
    lane: { state: { clockOffsetMs } },
  };
  const conditions = listingConditions(listingStatus(context as never));
  return conditions.map(({ kind, subject, details = {} }) =>
    [kind, subject, details['jobs'] ?? details['problem'], details['with_other_payees']]
      .filter(Boolean)
      .join(' | '),
  );
}

const all = ['1/0', '1/1', '2/0', '2/1'];

test.each([
  ['no look so far', { listings: [] }, []],
  ['all are listed', { listings: all.map(found) }, []],
  ['none was ever listed', { listings: [], lookedAtSecs: nowSecs }, []],
  ['one look missed all', { listings: all.map((job) => missed(job, 1)) }, []],
  ['two looks missed all within the grace', { listings: all.map((job) => missed(job, 2, hour)) }, []],
  [
    'some jobs of a service are gone',
    { listings: [found('1/0'), missed('1/1'), missed('2/0', 1), missed('3/0'), missed('4/0')] },
    ['listing_missing | service 1 | 1/1'],
  ],
  [
    'all jobs of two services are gone, and one was never listed',
    { listings: [missed('1/0'), { ...missed('2/0'), hasOtherPayee: true }, missed('2/1')] },
    ['listing_gone | facilitator.example | 1/0, 2/0, 2/1 | 2/0'],
  ],
  [
    'the service has been unclear for a short time',
    { listings: all.map(found), lookedAtSecs: nowSecs, unknownSinceSecs: nowSecs - hour, problem: 'timeout' },
    [],
  ],
  [
    'the service has been unclear for longer than the grace, and a job was gone before',
    {
      listings: [found('1/0'), missed('1/1')],
      lookedAtSecs: nowSecs,
      unknownSinceSecs: nowSecs - 3 * hour,
      problem: 'empty',
    },
    ['listing_missing | service 1 | 1/1', 'discovery_unknown | facilitator.example | empty'],
  ],
  // a process that has just started does not know that nobody looks
  [
    'all gateways were stopped for a day',
    { listings: all.map(found), lookedAtSecs: nowSecs - 24 * hour },
    [],
  ],
] satisfies [string, ListingState, string[]][])('the operator’s message if %s', async (_, state, alerts) => {
  expect(await told(state)).toEqual(alerts);
});

test('a process that runs and sees no look for much longer than the interval says that no process looks', async () => {
  const state = { listings: [], lookedAtSecs: nowSecs };
  expect(await told(state, 3 * hour * 1_000)).toEqual([]);
  expect(await told(state, 5 * hour * 1_000)).toEqual([
    'discovery_unknown | facilitator.example | not_asked',
  ]);
});
