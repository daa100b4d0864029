/** What people call a program's verbs, as far as rules know what they do. */
export type OrdinaryVerbs = {
  /** Options in front of the verb that take the next word. */
  readonly values?: string;
  /**
   * By the words in front of them (`""`: none): verbs that are harmless, or that rules of their own judge. A `*` at the
   * end stands for any ending, a `.` for the words in front alone. Words in front that are `*` are any one word.
   */
  readonly verbs: Readonly<Record<string, string>>;
  /** Words that only lead on to a verb, however many of them there are. */
  readonly groups?: string;
  /** Options with which an ordinary verb is ordinary no more. */
  readonly unless?: Readonly<Record<string, string>>;
  /** Every other word is a task of the workspace, but for these. */
  readonly tasksBut?: string;
};

const DOCKER_LOOKS = ". ls list inspect ps";
const DOCKER: OrdinaryVerbs = {
  values:
    "-c --context -H --host --config -l --log-level -f --file -p --project-name --profile --env-file --project-directory --progress --ansi",
  verbs: {
    "":
      "ps images build pull push run exec create start stop restart kill pause unpause wait logs inspect version info top stats port diff " +
      "history search events rm rmi tag rename cp save export login logout help",
    image: "ls list inspect history build pull push save rm prune tag",
    container:
      "ls list ps inspect logs top stats port diff run exec create start stop restart kill pause unpause wait cp export rm prune",
    volume: "ls list inspect create rm prune",
    network: "ls list inspect create rm prune",
    system: "df info events prune",
    builder: "prune",
    context: "ls list inspect show use",
    manifest: "inspect push",
    buildx: "build bake ls inspect du version imagetools",
    compose:
      "up down build ps logs config convert pull push run exec create start stop restart kill pause unpause rm top images ls port events " +
      "version cp watch wait stats",
    service: `${DOCKER_LOOKS} logs update create rollback`,
    stack: `${DOCKER_LOOKS} services deploy`,
    node: DOCKER_LOOKS,
    plugin: "ls list inspect install",
    secret: DOCKER_LOOKS,
    config: DOCKER_LOOKS,
    trust: "inspect",
  },
};

const KUBECTL: OrdinaryVerbs = {
  values:
    "-n --namespace --context --cluster --user --kubeconfig -s --server --as --as-group --as-uid --token --request-timeout --cache-dir -v --v",
  verbs: {
    "":
      "get describe logs explain top version api-resources api-versions cluster-info diff wait events kustomize completion options help " +
      "apply create delete drain scale patch edit replace rollout set label annotate run expose autoscale cordon uncordon taint cp exec attach " +
      "debug port-forward proxy certificate status projects whoami project",
    config:
      "view get-contexts current-context get-clusters get-users use-context set-context set-credentials set-cluster",
    auth: "can-i whoami",
    plugin: "list",
    krew: "list info search version install upgrade",
  },
};

const NPM: OrdinaryVerbs = {
  values: "--prefix -C -w --workspace --loglevel --registry --cache --userconfig --tag",
  verbs: {
    "":
      "ci clean-install install i add in isntall it cit install-test run run-script rum urn test t tst start stop restart exec x ls list ll la " +
      "view info show v outdated pack audit explain why fund doctor ping prefix root bin help help-search init create innit version diff " +
      "dedupe ddp find-dupes prune rebuild rb query search s se find sbom update up publish unpublish deprecate dist-tag link ln cache " +
      "uninstall remove rm un r unlink whoami pkg set-script completion bugs docs repo home shrinkwrap get upgrade",
    config: "get list ls",
    c: "get list ls",
    org: "ls",
    team: "ls",
    profile: "get",
    owner: "ls",
    access: "list get",
  },
};

const GH_KEY = "list add";
const TERRAFORM: OrdinaryVerbs = {
  verbs: {
    "":
      "plan validate fmt init output show graph providers version get console metadata help apply destroy import taint untaint force-unlock " +
      "up hclfmt render-json graph-dependencies validate-inputs find list",
    state: "list show pull rm mv push replace-provider",
    workspace: "list show select new delete",
    "run-all": "plan validate init output show fmt apply destroy",
    run: "plan validate init output show fmt apply destroy",
    stack: "output generate run",
    hcl: "fmt validate",
    dag: "graph",
  },
};

const PIP: OrdinaryVerbs = {
  values: "--python --log --proxy --timeout --cert --cache-dir",
  verbs: {
    "": "install download wheel list show freeze check help hash inspect debug search index uninstall lock",
    config: "list get debug",
    cache: "list info dir purge remove",
  },
};

const IP_LOOKS = ". show sh s list ls lst get";
const each = (names: string, verbs: string): Record<string, string> =>
  Object.fromEntries(names.split(" ").map((name) => [name, verbs]));

/**
 * Ordinary verbs by program. A program that stands here is asked about with any other verb: what a known program does by
 * a verb that nobody has looked at may be anything, from publishing to a plugin of somebody's.
 */
export const ORDINARY_VERBS: Readonly<Record<string, OrdinaryVerbs>> = {
  git: {
    values: "-c -C --git-dir --work-tree --namespace --super-prefix --config-env --list-cmds --attr-source",
    verbs: {
      "":
        "add am annotate apply archive bisect blame branch bundle cat-file check-attr check-ignore check-mailmap check-ref-format checkout " +
        "checkout-index cherry cherry-pick clean clone column commit commit-graph commit-tree config count-objects describe diff diff-files " +
        "diff-index diff-tree difftool fast-export fetch filter-branch filter-repo fmt-merge-msg for-each-ref format-patch fsck gc grep " +
        "hash-object help init interpret-trailers log ls-files ls-remote ls-tree merge merge-base merge-file merge-tree mergetool mktag " +
        "mktree multi-pack-index mv name-rev notes pack-refs patch-id prune pull push range-diff read-tree rebase reflog repack replace " +
        "rerere reset restore rev-list rev-parse revert rm shortlog show show-branch show-index show-ref stage stash status stripspace " +
        "switch symbolic-ref tag unpack-file update-index update-ref var verify-commit verify-pack verify-tag version whatchanged write-tree",
      lfs: "ls-files status pull fetch checkout env version track untrack locks fsck pointer diff push",
      remote: ". show get-url update prune add set-url rename remove rm set-head set-branches",
      submodule: ". status update init sync summary foreach add deinit",
      worktree: "add list remove prune lock unlock move repair",
      "sparse-checkout": "list set add init disable reapply check-rules",
      maintenance: "run start register stop unregister",
      subtree: "add merge pull split push",
      credential: "fill get",
      flow: "init version feature bugfix",
    },
  },
  gh: {
    values: "-R --repo --hostname",
    verbs: {
      "": "api status search version completion help",
      auth: "status token login refresh switch git-credential",
      pr: "view list status checks diff checkout create edit comment ready update-branch review merge",
      issue: "view list status create edit comment develop",
      repo: "view list clone set-default sync create edit delete archive rename",
      "repo deploy-key": GH_KEY,
      run: "list view watch download rerun",
      workflow: "list view run",
      release: "list view download create upload edit delete",
      label: "list",
      secret: "list set delete",
      variable: "list get set delete",
      gist: "list view clone create",
      cache: "list",
      ruleset: "list view check",
      project: "list view item-list field-list",
      org: "list",
      alias: "list set import",
      extension: "list search install upgrade",
      config: "get list",
      "ssh-key": GH_KEY,
      "gpg-key": GH_KEY,
      codespace: "list view logs ssh",
      cs: "list view logs ssh",
      attestation: "verify download",
    },
    unless: { "pr review": "-a --approve" },
  },
  glab: {
    values: "-R --repo --hostname",
    verbs: {
      "": "api version completion help",
      auth: "status",
      mr: "view list diff checkout create note update merge",
      issue: "view list create note update",
      ci: "list view status trace lint get run",
      pipeline: "list view status get run",
      repo: "view list clone search delete",
      release: "list view download create",
      label: "list",
      variable: "list get",
      config: "get",
    },
  },
  npm: NPM,
  yarn: {
    values: "--cwd --modules-folder --cache-folder",
    verbs: {
      config: "get list",
      npm: "info audit whoami publish tag",
      plugin: "list runtime",
      cache: "clean dir list",
    },
    tasksBut: "owner tag team login logout policies set config npm plugin cache",
  },
  pnpm: {
    values: "-C --dir --filter -F --prefix --loglevel --reporter --store-dir",
    verbs: { config: "get list", c: "get list", store: "path status prune", owner: "ls" },
    tasksBut: "owner login logout token team access profile set config c store env setup self-update server",
  },
  bun: {
    values: "--cwd --filter -F",
    verbs: { pm: "ls bin cache hash hash-string hash-print pack version whoami untrusted" },
    tasksBut: "upgrade pm",
  },
  deno: { verbs: {}, tasksBut: "deploy upgrade uninstall" },
  pip: PIP,
  pip3: PIP,
  uv: {
    values: "--project --directory --config-file --cache-dir --color",
    verbs: {
      "": "run sync add remove lock tree venv init export build publish version format help",
      pip: "install list show freeze check tree compile sync uninstall",
      tool: "list dir install run",
      python: "list find dir pin",
      cache: "dir clean prune",
      self: "version",
    },
  },
  poetry: {
    values: "-C --directory -P --project",
    verbs: {
      "": "install sync add remove update lock show check run build publish version init new search export about list help shell env",
      config: ".",
      self: "show",
      source: "show",
      cache: "list",
    },
    unless: { config: "--unset" },
  },
  cargo: {
    values: "--manifest-path --config --color -C -Z --target-dir",
    verbs: {
      "":
        "build b check c test t run r bench doc d clippy fmt fix clean tree metadata update search add remove rm init new fetch vendor " +
        "generate-lockfile locate-project pkgid verify-project version help install package publish yank owner info report read-manifest " +
        "rustc rustdoc nextest insta expand audit deny outdated machete udeps llvm-cov tarpaulin make xtask hack msrv semver-checks bloat " +
        "flamegraph criterion miri careful sqlx set-version upgrade modules mutants binstall release smart-release",
    },
  },
  go: {
    values: "-C",
    verbs: {
      "": "build test run vet fmt generate list env get install clean doc fix tool version work help bug",
      mod: "download tidy graph why verify vendor edit init",
    },
    unless: { env: "-w -u" },
  },
  gem: {
    verbs: {
      "":
        "list search info specification env environment which contents dependency outdated help query install update build fetch push yank " +
        "pristine cleanup unpack exec",
    },
  },
  bundle: {
    verbs: {
      "":
        "install exec check list show info outdated update add remove lock cache package init clean doctor platform gem console help " +
        "binstubs pristine licenses env version",
      config: ". list get",
    },
  },
  composer: {
    values: "-d --working-dir",
    verbs: { config: ".", global: "show require" },
    tasksBut: "config global self-update selfupdate",
  },
  dotnet: {
    verbs: {
      "": "build test run restore clean publish pack add remove list new sln format watch ef msbuild vstest script fsi exec help",
      nuget: "list push locals why",
      tool: "list restore run install update uninstall search",
    },
    tasksBut: "nuget tool user-secrets dev-certs workload",
  },
  brew: {
    verbs: {
      "": "list ls info search outdated deps uses leaves config doctor desc home log cat install upgrade bundle update help",
      services: ". list info start stop restart run",
    },
  },
  docker: DOCKER,
  podman: DOCKER,
  nerdctl: DOCKER,
  "docker-compose": { values: DOCKER.values ?? "", verbs: { "": DOCKER.verbs["compose"] ?? "" } },
  kubectl: KUBECTL,
  oc: KUBECTL,
  kustomize: { verbs: { "": "build version help" } },
  helm: {
    values: "-n --namespace --kube-context --kubeconfig --repository-config --registry-config",
    verbs: {
      "":
        "list ls lint template status history hist get show inspect search version env verify create package pull fetch diff completion help " +
        "install upgrade rollback uninstall un delete del push",
      dependency: "list ls build update up",
      dep: "list ls build update up",
      repo: "list ls add update up index",
      plugin: "list ls install",
    },
  },
  terraform: TERRAFORM,
  tofu: TERRAFORM,
  terragrunt: TERRAFORM,
  pulumi: {
    values: "-s --stack -C --cwd",
    verbs: {
      "": "preview pre about version whoami logs schema help up update destroy down dn import",
      stack: ". ls output history graph",
      config: ". get",
    },
    unless: { config: "--show-secrets", stack: "--show-secrets" },
  },
  aws: {
    values:
      "--profile --region --output --query --endpoint-url --color --ca-bundle --cli-read-timeout --cli-connect-timeout",
    verbs: {
      "": "help",
      "*": "help wait ls describe-* list-* get-* head-* batch-get-* lookup-* filter-* simulate-* validate-* estimate-* search-*",
      s3: "ls cp mv sync mb rm rb presign",
      logs: "tail start-query describe-* get-* filter-*",
      dynamodb: "scan query describe-* list-* get-* batch-get-*",
      configure: "list list-profiles get export-credentials",
      kms: "decrypt describe-* list-* get-*",
      sts: "get-* assume-*",
      cloudformation: "describe-* list-* get-* validate-* estimate-* deploy detect-*",
    },
  },
  gcloud: {
    values: "--project --region --zone --account --configuration --format --filter --verbosity",
    groups:
      "alpha beta compute instances disks images networks subnets firewall-rules zones regions machine-types instance-groups instance-templates " +
      "snapshots addresses forwarding-rules backend-services url-maps projects organizations folders config configurations auth run services " +
      "revisions jobs executions functions app versions container clusters node-pools operations sql databases backups users storage buckets " +
      "objects logging logs sinks builds triggers artifacts repositories packages docker iam roles service-accounts secrets pubsub topics " +
      "subscriptions dns managed-zones record-sets kms keys keyrings billing accounts redis tasks queues scheduler workflows monitoring " +
      "dashboards policies components asset ai models endpoints deploy releases delivery-pipelines spanner bigtable firestore indexes eventarc",
    verbs: {
      "*":
        "list describe get get-value get-iam-policy get-ancestors get-ancestors-iam-policy read tail lookup search info version help ls cat du " +
        "stat list-* get-server-config get-serial-port-output topic access print-access-token print-identity-token",
    },
  },
  az: {
    values: "--subscription -g --resource-group --query -o --output -n --name",
    groups:
      "account vm vmss aks acr network vnet subnet nsg rule nic lb public-ip route-table dns private-dns zone record-set group storage blob " +
      "container share table queue webapp functionapp function appservice plan staticwebapp keyvault secret key certificate sql server db mi " +
      "cosmosdb postgres mysql flexible-server redis monitor log-analytics workspace activity-log metrics alert diagnostic-settings role " +
      "assignment definition ad user sp app resource deployment sub mg tag policy lock feature provider extension containerapp env revision " +
      "replica identity disk image snapshot sig pipelines runs devops project repos pr boards work-item bicep cloud config batch cdn eventhubs " +
      "eventhub namespace servicebus topic subscription signalr search advisor recommendation security consumption billing quota nodepool " +
      "cluster repository log slot",
    verbs: { "*": "list show list-* show-* get-* help version tail exists check-name get-access-token" },
  },
  gsutil: { verbs: { "": "ls cat du stat hash version help cp mv rm rb mb" } },
  eksctl: { verbs: { "": "get version info delete" } },
  doctl: { verbs: { "": "version", "*": "list get", "* *": "list get" } },
  heroku: {
    verbs: {
      "":
        "apps apps:info apps:destroy ps logs releases releases:info releases:rollback status version help addons addons:info config auth:token " +
        "auth:whoami pg:info pg:ps pg:reset domains container:release pipelines:promote buildpacks features",
    },
  },
  flyctl: {
    verbs: {
      "": "status logs version releases deploy launch help",
      ...each(
        "apps machine machines volumes ips certs regions services image",
        "list ls status show info destroy",
      ),
      secrets: "list",
    },
  },
  vercel: {
    verbs: {
      "": "ls list inspect logs whoami help deploy promote rollback alias remove build dev",
      env: "ls list",
    },
  },
  vault: {
    verbs: { "": "status version path-help read print", kv: "list get metadata put delete destroy" },
  },
  consul: { verbs: { "": "members info version catalog validate", kv: "get put delete" } },
  nomad: {
    verbs: {
      "": "status version validate plan run logs",
      job: "status plan validate inspect run history",
      node: "status",
    },
  },
  argocd: {
    verbs: {
      "": "version",
      app: "list get diff history logs manifests resources sync rollback set delete",
      cluster: "list get",
      proj: "list get",
    },
  },
  systemctl: {
    values: "-t --type -p --property -M --machine -H --host -o --output -n --lines --state",
    verbs: {
      "":
        "status list-* is-* show cat help get-default show-environment enable reenable disable start stop restart reload try-restart mask unmask " +
        "link edit set-property daemon-reload revert isolate poweroff reboot halt",
    },
  },
  ip: {
    values: "-f -family -n -netns -b -batch -l -loops",
    verbs: {
      "": "help",
      ...each(
        "a ad addr address l link r ro route n neigh neighbour rule ru maddr m mroute mr tunnel",
        IP_LOOKS,
      ),
      netns: ". list",
    },
    unless: { "": "-b -batch" },
  },
};
