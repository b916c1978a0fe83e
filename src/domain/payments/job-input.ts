import { Ajv2020, type ErrorObject } from 'ajv/dist/2020.js';

/** The faults of a request's body: one line each, at most ten. Empty for a valid body. */
export type InputCheck = (body: Uint8Array) => readonly string[];

const maxFaults = 10;

/**
 * A check of JSON bodies against a JSON Schema, draft 2020-12.
 * @throws Error where the schema does not compile; an unknown keyword is an error, and no reference is fetched
 */
export function compileSchema(schema: Readonly<Record<string, unknown>>): InputCheck {
  // formats are not checked: validators differ in which of them they check, and how strictly
  const ajv = new Ajv2020({
    allErrors: true,
    validateFormats: false,
    strictTypes: false,
    strictRequired: false,
  });
  const validate = ajv.compile(schema);
  return (body) => {
    const value = parseJson(body);
    if (value === undefined) return ['the body is not JSON in UTF-8'];
    return validate(value) ? [] : (validate.errors ?? []).slice(0, maxFaults).map(faultText);
  };
}

function parseJson(body: Uint8Array): unknown {
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(body));
  } catch {
    return undefined;
  }
}

/** Names the location and the rule; never quotes the client's own text. */
function faultText({ instancePath, keyword, message }: ErrorObject): string {
  return `${instancePath === '' ? 'the body' : instancePath.slice(0, 200)} ${message ?? `breaks ${keyword}`}`;
}

/** The media type of a content type header: lower case, without parameters. */
export function mediaTypeOf(contentType: string | undefined): string {
  return contentType?.split(';', 1)[0]?.trim().toLowerCase() ?? '';
}

/** Whether a runner can be sent this content type unchanged. */
export function isCarriable(contentType: string | undefined): boolean {
  return contentType === undefined || /^[!-~][ -~]{0,199}$/.test(contentType);
}
