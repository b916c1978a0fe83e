/** What the reference work takes on a processor of usual speed, in milliseconds. */
const usualMs = 5;
const reference = Array.from({ length: 20_000 }, (_, id) => ({ id, name: `name ${id}`, on: id % 2 === 0 }));

/**
 * How many times slower this processor is than a usual one, and at least 1: the factor of each bound on processor time. The least of
 * five times of the same work, of this thread alone: other programs on the machine hardly count.
 */
export const slowness: number = Math.max(1, Math.min(...Array.from({ length: 5 }, referenceMs)) / usualMs);

function referenceMs(): number {
  const before = process.threadCpuUsage();
  JSON.parse(JSON.stringify(reference));
  const { user, system } = process.threadCpuUsage(before);
  return (user + system) / 1_000;
}
