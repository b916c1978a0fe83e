/** What the commands of the rigs share. */

export const say = (line: string): void => console.log(line);

/** The value of an option, which is a whole number in a range. */
export function whole(name: string, text: string, least: number, most: number): number {
  const number = Number(text);
  if (!Number.isInteger(number) || number < least || number > most)
    throw new Error(`--${name} is a whole number from ${least} to ${most}`);
  return number;
}

/** The value of an option, which is one of these names. */
export function oneOf<T extends string>(name: string, text: string | undefined, names: readonly T[]) {
  const found = names.find((one) => one === text);
  if (text !== undefined && !found) throw new Error(`--${name} is one of ${names.join(', ')}`);
  return found;
}

/** By default another one each time. */
export function newSeed(): string {
  return String(Date.now() % 1_000_000);
}

/** Ends the process with 0 where all was sound, with 1 where it was not, and with 64 where the command could not be run. */
export async function runCommand(isSound: () => Promise<boolean>): Promise<void> {
  try {
    process.exitCode = (await isSound()) ? 0 : 1;
  } catch (error) {
    console.error(error instanceof Error ? error.message : error);
    process.exitCode = 64;
  }
}
