import { InvalidInput } from './errors.ts';

/** A Standard Schema, which zod's schemas are: only this much of it is used, so that no version is forced. */
export interface AnySchema<Output = unknown> {
  readonly '~standard': {
    readonly types?: { readonly output: Output } | undefined;
    readonly validate: (value: unknown) => Checked<Output> | Promise<Checked<Output>>;
  };
}

type Checked<Output> =
  | { readonly value: Output; readonly issues?: undefined }
  | { readonly issues: readonly Issue[] };

interface Issue {
  readonly message: string;
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined;
}

/** What a handler gets as `input`; undefined where the job has no schema. */
export type OutputOf<Schema> = Schema extends AnySchema<infer Output> ? Output : undefined;

const issuesTold = 5;
/** Keys come from the client, and may be long. */
const mistakesLength = 500;

/**
 * Parses a body as JSON and checks it.
 * @throws InvalidInput naming the mistakes, without the values
 */
export async function readInput(schema: AnySchema, body: Buffer): Promise<unknown> {
  const checked = await schema['~standard'].validate(parse(body));
  if (!checked.issues) return checked.value;
  const mistakes = checked.issues.slice(0, issuesTold).map(sentence).join('; ');
  throw new InvalidInput(mistakes.slice(0, mistakesLength).toWellFormed());
}

function parse(body: Buffer): unknown {
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(body));
  } catch {
    throw new InvalidInput('the body is not JSON in UTF-8');
  }
}

function sentence({ message, path = [] }: Issue): string {
  const place = path.map((step) => String(typeof step === 'object' ? step.key : step)).join('.');
  return place === '' ? message : `${place}: ${message}`;
}
