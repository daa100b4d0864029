import { describe, expect, it } from "vitest";
import { classifyVariable } from "./variable-table.ts";

describe("a variable", () => {
  it.each([
    ["GIT_TRACE", "/home/u/.bashrc"],
    ["GIT_TRACE2_EVENT", undefined],
    ["GIT_REDIRECT_STDOUT", "/x"],
  ])("names a file that is written: %s=%s", (name, value) => {
    expect(classifyVariable(name, value)).toBe("output");
  });

  it.each([
    ["NODE_OPTIONS", "--max-old-space-size=4096"],
    ["NODE_OPTIONS", "--experimental-vm-modules --no-warnings"],
    ["GOFLAGS", "-mod=mod -race"],
    ["RUSTFLAGS", "-C target-cpu=native -Dwarnings"],
    ["CFLAGS", "-O2 -g -Wall -fPIC"],
    ["MAVEN_OPTS", "-Xmx2g -XX:+UseG1GC"],
    ["PYTEST_ADDOPTS", "-x -n auto --tb=short"],
    ["PYTHONPATH", "src:."],
    ["PERL5OPT", "-w"],
    ["RUBYOPT", "-W0"],
    ["PYTEST_ADDOPTS", "-xvs -rA"],
    ["CFLAGS", "-march=native -m64"],
    ["JAVA_OPTS", "-XX:+HeapDumpOnOutOfMemoryError -Djava.awt.headless=true"],
    ["VIRTUAL_ENV", ".venv"],
    ["CC", "ccache gcc-12"],
    ["HTTPS_PROXY", "http://localhost:8080"],
    ["PIP_NO_CACHE_DIR", "1"],
    ["DATABASE_URL", "postgres://db/x"],
    ["CARGO_TARGET_DIR", "target"],
    ["GIT_TRACE", "1"],
    ["GIT_TRACE2", "true"],
  ])("changes nothing of what runs: %s=%s", (name, value) => {
    expect(classifyVariable(name, value)).toBe("none");
  });

  it.each([
    ["NODE_OPTIONS", "--require=./x"],
    ["NODE_OPTIONS", "--import data:x"],
    ["NODE_OPTIONS", undefined],
    ["GOFLAGS", "-toolexec=x"],
    ["RUSTFLAGS", "-C linker=x"],
    ["RUSTFLAGS", "-Clinker=x"],
    ["CFLAGS", "-fplugin=x"],
    ["CFLAGS", "-B."],
    ["MAVEN_OPTS", "-javaagent:x"],
    ["PYTEST_ADDOPTS", "-p evil"],
    ["PERL5OPT", "-MEvil"],
    ["PERL5OPT", "-mEvil"],
    ["PERL5OPT", "-wMEvil"],
    ["RUBYOPT", "-wrevil"],
    ["PYTEST_ADDOPTS", "-xpevil"],
    ["NODE_OPTIONS", "--inspect"],
    ["NODE_OPTIONS", "--inspect-brk=0.0.0.0:9229"],
    ["NODE_OPTIONS", "-r ./x"],
    ["RUSTFLAGS", "-Zcodegen-backend=x"],
    ["JAVA_TOOL_OPTIONS", "-XX:OnOutOfMemoryError=x"],
    ["JAVA_TOOL_OPTIONS", "-XX:OnError=x"],
    ["JAVA_TOOL_OPTIONS", "-XX:VMOptionsFile=x"],
    ["JAVA_TOOL_OPTIONS", "-XX:Flags=x"],
    ["JAVA_TOOL_OPTIONS", "-agentlib:x"],
    ["MAVEN_OPTS", "-Dmaven.ext.class.path=x.jar"],
    ["RUBYOPT", "-revil"],
    ["RUSTC_WRAPPER", "sccache"],
    ["CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUNNER", "x"],
    ["PYTHONPATH", "/tmp"],
    ["PYTHONPATH", "src:../x"],
    ["CC", "./cc"],
    ["HTTPS_PROXY", "http://evil"],
    ["HOME", "/tmp"],
    ["DOTNET_STARTUP_HOOKS", "x.dll"],
    ["CMAKE_C_COMPILER_LAUNCHER", "x"],
    ["KUBECONFIG", "x"],
  ])("may change what runs: %s=%s", (name, value) => {
    expect(classifyVariable(name, value)).toBe("loader");
  });
});
