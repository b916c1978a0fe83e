import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';

/** Names every package that is loaded with a module. */
async function packagesOf(module: string): Promise<string> {
  const program = `
    import { registerHooks } from 'node:module';
    const seen = new Set();
    registerHooks({ resolve: (name, context, next) => { seen.add(name); return next(name, context); } });
    await import(${JSON.stringify(new URL(module, import.meta.url).href)});
    console.log([...seen].join('\\n'));
    process.exit(0);`;
  const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', program]);
  return stdout;
}

test('a gateway loads neither the sign-in library without user accounts, nor OpenTelemetry without traces', async () => {
  for (const module of ['../../src/main.ts', '../../src/app/chat.ts', '../../src/app/jobs.ts']) {
    const packages = await packagesOf(module);
    expect(packages).not.toContain('better-auth');
    expect(packages).not.toContain('opentelemetry');
  }
  expect(await packagesOf('../../src/app/identity.ts')).toContain('better-auth');
  expect(await packagesOf('../../src/traces/tracing.ts')).toContain('@opentelemetry/sdk-trace');
});
