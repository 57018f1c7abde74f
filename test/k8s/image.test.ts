/** The Dockerfile: linted, and held to its promises. What it builds is started in another file. */
import { readFileSync } from "node:fs";
import type { From } from "dockerfile-ast";
import { validate } from "dockerfile-utils";
import { describe, expect, it } from "vitest";
import {
  command,
  DOCKERFILE,
  entrypoint,
  healthCommand,
  lastStage,
  stages,
} from "./built-image.ts";

const keywords = lastStage().map((each) => each.getKeyword());
const all = stages().flatMap(({ instructions }) => instructions);

describe("the Dockerfile", () => {
  it("has no finding of the linter", () => {
    expect(validate(DOCKERFILE)).toEqual([]);
    expect(validate("FROM a\nRUNN b\n")).not.toEqual([]);
  });

  it("installs by the lock file, without running what packages bring", () => {
    const installs = all.filter((each) => /npm.*(ci|install)/.test(each.toString()));
    expect(installs).toHaveLength(1);
    expect(command(installs[0]).slice(0, 3)).toEqual(["npm", "ci", "--ignore-scripts"]);
  });

  it("runs no shell, neither while it is built nor later", () => {
    for (const run of all.filter((each) => each.getKeyword() === "RUN")) {
      expect(command(run).length).toBeGreaterThan(0);
    }
    expect(keywords.filter((keyword) => ["RUN", "ADD", "SHELL"].includes(keyword))).toEqual([]);
    expect(entrypoint()[0]).toBe("/nodejs/bin/node");
    expect(command(lastStage().find((each) => each.getKeyword() === "CMD"))[0]).toBe("serve");
  });

  it("ends as a numeric user that is not root", () => {
    const user = lastStage().findLast((each) => each.getKeyword() === "USER");
    expect(user?.getArgumentsContent()).toMatch(/^[1-9]\d*:[1-9]\d*$/);
  });

  it("names base images that can be replaced by ones with a digest, and none by `latest`", () => {
    const args = new Map(
      [...DOCKERFILE.matchAll(/^ARG (\w+)=(\S+)$/gm)].map(([, name, value]) => [name, value]),
    );
    const images = all.filter((each) => each.getKeyword() === "FROM") as From[];
    expect(images).toHaveLength(2);
    for (const image of images) {
      const name = /^\$\{(\w+)\}$/.exec(image.getImage() ?? "")?.[1];
      expect(args.get(name)).toMatch(/^[\w./-]+:(?!latest)[\w.-]+$/);
    }
    expect(args.get("BUILD_IMAGE")).toMatch(/^node:\d+\.\d+\.\d+-/);
  });

  it("checks the health by the verb, in the program that it starts", () => {
    const [node, main, ...rest] = healthCommand();
    expect([node, main]).toEqual([entrypoint()[0], entrypoint().at(-1)]);
    expect(rest[0]).toBe("health");
  });

  it("is sent no more than it copies", () => {
    const letIn = readFileSync(".dockerignore", "utf8").trim().split("\n").slice(1);
    const copied = all
      .filter((each) => each.getKeyword() === "COPY" && !each.toString().includes("--from"))
      .flatMap((each) =>
        each
          .getArguments()
          .slice(0, -1)
          .map((argument) => `!${argument.getValue()}`),
      );
    expect(copied.sort()).toEqual(letIn.sort());
  });
});
