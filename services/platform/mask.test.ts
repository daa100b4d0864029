import { describe, expect, it } from "vitest";
import { maskJson, maskText } from "./mask.ts";

/** Put together here, so that no scanner takes the file for a leak. */
const word = (...parts: string[]): string => parts.join("");

const secrets: Record<string, [text: string, secret: string]> = {
  "a test key": ["value sk-test-1 end", "sk-test-1"],
  "a provider key": [`key: ${word("sk-", "ant-api03-AbCdEf123456")}`, "AbCdEf123456"],
  "a GitHub token": [
    `git clone https://${word("ghp_", "16C7e42F292c6912E7710c838347Ae178B4a")}@x`,
    "16C7e42F",
  ],
  "a fine-grained GitHub token": [word("github_pat_", "11ABCDEFG0abcdefghij_KLMNOP"), "KLMNOP"],
  "an AWS key id": [`id=${word("AKIA", "IOSFODNN7EXAMPLE")}`, "IOSFODNN7"],
  "an AWS secret": ["AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", "K7MDENG"],
  "a Slack token": [word("xoxb-", "123456789012-abcdef"), "abcdef"],
  "a JWT": [`t=${word("eyJhbGciOiJIUzI1NiJ9.", "eyJzdWIiOiIxIn0.dozjgNryP4J3jVmN")}`, "dozjgNry"],
  "an npm token": [word("npm_", "abcdefghijklmnopqrstuvwxyz0123456789"), "rstuvw"],
  "a GitLab token": [word("glpat-", "xYz12_abcDEF34567890"), "abcDEF"],
  "a Google key": [word("AIza", "SyA1234567890abcdefghijklmnopqrstuv"), "7890abc"],
  "a bearer header": ["Authorization: Bearer x", "Bearer x"],
  "a bearer header with tabs": ["curl -H 'authorization:\tbearer abc.def-1'", "abc.def"],
  "a basic header": ["Authorization: Basic dXNlcjpwYXNz", "dXNlcjpwYXNz"],
  "a flag with =": ["deploy --token=abc", "--token=abc"],
  "a flag with a space": ["mysql --password hunter2 -h db", "hunter2"],
  "a quoted flag": [`tool --api-key "a b c" --verbose`, "a b c"],
  "an assignment": ["export DB_PASSWORD=correcthorse", "correcthorse"],
  "JSON in a text": ['{"api_key": "abc\\"def", "x": 1}', "def"],
  "JSON in JSON": ['"{\\"api_key\\": \\"abcdef\\", \\"x\\": 1}"', "abcdef"],
  "an address": ["postgres://app:s3cr/et@db:5432/x", "s3cr"],
  "a login": ["curl -u admin:hunter2 https://x", "hunter2"],
  "a cookie": ["Cookie: sid=abc; theme=dark", "sid=abc"],
  "a private key": [
    `-----BEGIN ${word("RSA PRIVATE", " KEY")}-----\nMIIEow\n-----END ${word("RSA PRIVATE", " KEY")}-----\nafter`,
    "MIIEow",
  ],
  "a private key cut off": [`-----BEGIN ${word("PRIVATE", " KEY")}-----\nMIIEow`, "MIIEow"],
  "a random text near a hint": ["secret is Zk3Q9vXb7Lm2Np8Rt5Ws1Yd4Ac6Ef0Gh", "Zk3Q9vXb7"],
  "a password glued to mysql's flag": ["mysql -phunter2 -u root", "hunter2"],
  "one behind other words": [`mysqldump -h db -u root -p'hunter2 x' app`, "hunter2"],
  sshpass: ["sshpass -p hunter2 ssh -p 22 host", "hunter2"],
  redis: ["redis-cli -h db -a hunter2 ping", "hunter2"],
  "a setting by its name": ["aws configure set aws_secret_access_key hunter2", "hunter2"],
  "npm's setting": ["npm config set //registry.example/:_authToken hunter2", "hunter2"],
  "a here-string for stdin": ["docker login -u me --password-stdin <<< hunter2", "hunter2"],
  "an echo for stdin": ["echo hunter2 | docker login -u me --password-stdin", "hunter2"],
  "docker's flag": ["docker login -u me -p hunter2 x.example", "hunter2"],
  "a sentence": ["my password is swordfish, ok?", "swordfish"],
  "a sentence about a token": ["Use it: the token is hunter2.", "hunter2"],
  "a sentence with a colon": ["My password is: swordfish", "swordfish"],
  "a wish": ["please set my password to swordfish", "swordfish"],
  "a sentence about a key": ["the API key is hunter2", "hunter2"],
  "a quoted sentence": [`the database password is "swordfish"`, "swordfish"],
  "a token after an escape": [String.raw`line\nsk-test-1`, "sk-test-1"],
};

const nearMisses = [
  "0198c5a2-7d3e-7abc-8def-0123456789ab",
  "commit da39a3ee5e6b4b0d3255bfef95601890afd80709",
  "the key file is da39a3ee5e6b4b0d3255bfef95601890afd80709",
  "token digest sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
  "/home/dev/project/services/platform/secret-store/key-rotation.ts",
  "task-1 risk-based disk-usage desk-42 ask-2-people",
  "pip install scikit-learn sk-learn",
  "the bearer of bad news; basic English; a basic example",
  "max_tokens: 4096, input_tokens=12",
  "password: string; token: null; secret = ${SECRET}",
  "deploy --token $TOKEN --verbose",
  "docker run -u 1000:1000 alpine",
  "https://example.com:8080/path@v2",
  "git log --author=me && npm_config_registry=x npm test",
  "the secretary wrote a tokenizer",
  "monkey=1 bypass=2 keyboard: us",
  "mkdir -p dir && cp -a x y && ssh -p 22 host",
  "mysql -p -u root; mysql -P 3306; docker run -p 80:80 x",
  "sshpass -e ssh -p 22 host; sshpass -f file ssh -p 22 host",
  "redis-cli -h host ping; git commit -a -m x",
  "password is required; my password is wrong; our password is in the vault",
  "the token is expired; the token is opaque; the secret is sha256:abc1",
  "my token is not valid, the password is 'required'",
  "aws configure set region eu-west-1; npm config set registry x",
  "docker login --password-stdin < file; echo x | docker build -",
  "mysql -p$DB_PASSWORD -u root",
  "adds a token to the list; the token is to be read; pass it to the child; map password to hash2",
  "the password is checked, then the passphrase is derived",
];

describe("masking", () => {
  it.each(Object.entries(secrets))("hides %s", (_name, [text, secret]) => {
    const result = maskText(text);
    expect(result).not.toContain(secret);
    expect(result).toContain("[masked:");
    expect(maskText(result)).toBe(result);
  });

  it.each(nearMisses)("leaves `%s` as it is", (text) => {
    expect(maskText(text)).toBe(text);
  });

  it("keeps what stands around a secret", () => {
    expect(maskText("deploy --token=abc --env prod")).toBe("deploy --token=[masked:value] --env prod");
    expect(maskText("postgres://app:pw@db/x")).toBe("postgres://app:[masked:url_password]@db/x");
  });

  it("hides the three secrets of one call, whatever the depth", () => {
    const call = {
      value: "sk-test-1",
      headers: { Authorization: "Bearer x" },
      cmd: "deploy --token=abc",
      deep: [{ list: ["a", { dbPassword: 12345, nested: { apiKey: ["one", { two: "three" }] } }] }],
      argv: ["deploy", "--token", "abcdef", "--verbose"],
    };
    const text = JSON.stringify(maskJson(call));
    for (const secret of ["sk-test-1", "Bearer x", "--token=abc", "12345", "one", "three", "abcdef"]) {
      expect(text).not.toContain(secret);
    }
    expect(text).toContain("--verbose");
    expect(maskJson(maskJson(call))).toEqual(maskJson(call));
    expect(maskText(`failed: ${JSON.stringify(call)}`)).not.toMatch(/sk-test-1|Bearer x|--token=abc/);
  });

  it("hides a program's password in a list of arguments", () => {
    expect(maskJson(["/usr/bin/mysql", "-u", "root", "-phunter2"])).not.toContain("-phunter2");
    expect(maskJson(["sshpass", "-p", "hunter2", "ssh", "-p", "22"])).toEqual([
      "sshpass",
      "-p",
      "[masked:value]",
      "ssh",
      "-p",
      "22",
    ]);
    expect(maskJson(["redis-cli", "-a", "hunter2"])).not.toContain("hunter2");
    expect(maskJson(["ssh", "-p", "22"])).toEqual(["ssh", "-p", "22"]);
    expect(maskJson(["mysql", "-p", "app"])).toEqual(["mysql", "-p", "app"]);
  });

  it("keeps a key named like the prototype", () => {
    expect(JSON.stringify(maskJson(JSON.parse('{"__proto__":{"a":"sk-test-1"}}')))).toBe(
      '{"__proto__":{"a":"[masked:api_key]"}}',
    );
  });

  const megabyte = 1_048_576;
  const hostile: Record<string, string> = {
    "one letter": "a",
    dashes: "-",
    "starts of keys": "sk-",
    "starts of tokens": "eyJaaaaaaaa.",
    "token runs": "eyJaaaaaaaa-",
    addresses: "://a:b",
    "flags with an open quote": '--token "',
    assignments: "token=",
    quotes: 'password:"\\',
    "private key heads": `-----BEGIN ${word("PRIVATE", " KEY")}----`,
    "bearer words": "Bearer ",
    spaces: " ",
    cookies: "cookie:",
    "flag heads": "--a-",
    "entropy near hints": "key aB3",
    logins: "-u a:",
    programs: "mysql ",
    "programs with options": "redis-cli -x ",
    "logins of docker": "docker login ",
    "here-strings": "--password-stdin ",
    echoes: "echo a ",
    sentences: "my password is ",
    settings: "config set a",
  };
  it.each(Object.entries(hostile))("masks a megabyte of %s in linear time", (_name, piece) => {
    const text = piece.repeat(Math.ceil(megabyte / piece.length)).slice(0, megabyte);
    const startedMs = performance.now();
    maskText(text);
    // A pattern that backtracks takes minutes here; five seconds leave room for a busy machine.
    expect(performance.now() - startedMs).toBeLessThan(5_000);
  });
});
