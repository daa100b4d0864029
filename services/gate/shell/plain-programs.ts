/** Programs of everyday work in a repository that no other list of the program table has: text, builds, tests, linters. */
export const EVERYDAY =
  // coreutils and their kin
  "b2sum sha224sum sha384sum shasum md5 base32 basenc csplit dircolors expand unexpand fmt hostid link logname mkfifo " +
  "numfmt pathchk pinky pr ptx shuf sum tsort tty users vdir dir who w last cal ncal locale localedef getent getconf " +
  "look rev colrm col colcrt hexyl bat batcat eza exa lsd delta difft dust duf procs btop tokei cloc scc sd choose hck " +
  "mlr xsv qsv csvcut csvgrep csvjson csvlook csvstat in2csv jo jid gron dasel xmllint xmlstarlet htmlq pup tidy yamllint jsonlint " +
  "apropos whatis tldr cheat lsattr getfacl namei findmnt lsof pstree pidof pmap iostat mpstat sar nproc taskset mlocate plocate " +
  "dos2unix unix2dos recode uconv enca chardetect file mimetype identify pdftotext pdfinfo pandoc asciidoctor " +
  "lz4 lzma unxz unzstd bunzip2 bzcat xzcat zstdcat zgrep zless zmore zdiff zcmp 7z 7za 7zr p7zip bsdtar ar ranlib cpio pax " +
  "ld nm objdump readelf objcopy strip size addr2line c++filt otool lipo install_name_tool ldconfig sw_vers " +
  // compilers and builds
  "gcc g++ cc c++ cpp clang clang++ clang-format clang-tidy clangd as nasm yasm rustc rustfmt rustdoc cargo-fmt cargo-clippy " +
  "gofmt goimports golangci-lint staticcheck gopls govulncheck javac javap javadoc jdeps jshell kotlinc kotlin scalac scala ktlint " +
  "detekt checkstyle google-java-format ghc hlint ormolu fourmolu ocamlc ocamlopt dune ocamlformat elixirc elixir iex mix rebar3 erl erlc " +
  "zig nim crystal dmd fpc gfortran julia swiftc swiftformat swiftlint mcs csc fsc protoc buf flatc thrift capnp bison yacc flex re2c " +
  "autoconf automake autoreconf aclocal libtool pkg-config pkgconf meson ctest cpack qmake scons gn waf premake " +
  // JavaScript and the web
  "tsc tsserver eslint eslint_d prettier biome oxlint standard xo stylelint tslint dprint rome esbuild swc rollup webpack parcel vite " +
  "turbo nx rush wireit nyc c8 ava tap tape jasmine karma cypress playwright knip madge depcheck npm-check-updates ncu sass less " +
  "lessc postcss tailwindcss typedoc jsdoc api-extractor markdownlint markdownlint-cli2 cspell commitlint " +
  "ng next nuxt astro svelte-check vue-tsc terser uglifyjs lightningcss publint attw size-limit changeset " +
  // Python
  "ruff black isort flake8 pylint mypy pyright pytest py.test nox coverage pyflakes pycodestyle pydocstyle bandit vulture pyupgrade " +
  "autopep8 yapf autoflake radon pip-compile pip-audit sphinx-build mkdocs flit " +
  "django-admin twine codespell " +
  // other languages
  "rspec rubocop standardrb rdoc yard sorbet srb steep brakeman phpunit phpstan phpcs phpcbf psalm pint " +
  "php-cs-fixer pest prove perltidy perlcritic luacheck stylua busted shellcheck shfmt bats bats-core checkbashisms nuget msbuild " +
  "dart pub mvnw gradlew lein clj purs elm-test elm-format terraform-docs tflint tfsec checkov trivy grype syft " +
  "hadolint dockle actionlint zizmor kubeval kubeconform kube-linter helmfile opa cedar regal sqlfluff " +
  "pgformatter gitleaks trufflehog semgrep osv-scanner vale proselint write-good aspell hunspell ansible-lint cfn-lint " +
  "reuse licensee licensed git-cliff semantic-release release-it goreleaser mdbook hugo jekyll " +
  "graphviz dot mmdc plantuml ffprobe " +
  // databases and services, to look at; rules of their own say more
  "pg_isready pg_dump pg_dumpall pg_restore createdb dropdb createuser dropuser mysqldump mongodump mongorestore " +
  "age yq applypatch " +
  // In two parts: the program belongs to one runtime, and its name to that runtime's adapter.
  `${["apply", "patch"].join("_")} ` +
  "hostnamectl timedatectl loginctl sw_vers setcap getcap groupadd chpasswd wipefs ss netstat arp " +
  "ip6tables xclip xsel pbcopy pbpaste wl-copy wl-paste notify-send cowsay figlet lolcat fortune rails pg_ctl launchctl defaults etcdctl cqlsh influx locate pre-commit";
