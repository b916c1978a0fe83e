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

test('a gateway without user accounts does not load the sign-in library', async () => {
  for (const module of ['../../src/main.ts', '../../src/app/chat.ts', '../../src/app/jobs.ts'])
    expect(await packagesOf(module)).not.toContain('better-auth');
  expect(await packagesOf('../../src/app/identity.ts')).toContain('better-auth');
});
