#!/bin/sh
# Takes one hook payload from standard input to the policy gate and prints the gate's reply. Written by `fabric install`.
#
#   hook.sh gate HASH      in front of an effect: a reply of the gate, or exit code 2 and the reason on standard error;
#                          what waits in spool/ is told first, since it may bear on the answer
#   hook.sh observe HASH   tells something: never holds the client; what the gate does not take waits in spool/
#
# Beside it: `url` (this runtime's address at the gate), `token` (mode 0600), `deadlines` (seconds: gate, observe, and how
# long a call waits for its approval: the same is asked again until a person decided; then, or after that time, the reply).
# The token is in no argument and in no message. Only `curl` is started; every other step is the shell's own.
umask 077
dir=${0%/*}
mode=$1
hash=$2
newline='
'
spool=$dir/spool
spool_max_files=500
spool_max_kib=16384
drain_max_files=20
form=text/x-fabric-hook

refuse() {
  printf 'GATE_UNREACHABLE: %s; nothing was allowed, try again, or ask a person to look at the policy gate\n' "$1" >&2
  exit 2
}

# Sends the body `$1` (- is standard input) within `$2` seconds; sets `reply` and `sent` (curl's exit code).
send() {
  reply=$(
    curl -q -sS --config /dev/fd/3 --max-time "$2" --data-binary "@$1" 2>/dev/null 3<<SETTINGS
url = "$url"
header = "authorization: Bearer $token"
header = "x-fabric-hooks: $hash"
header = "content-type: application/json"
header = "accept: $form"
header = "expect:"
noproxy = "*"
connect-timeout = 2
max-filesize = 16777216
fail
SETTINGS
  )
  sent=$?
}

# Prints a reply of the form `fabric CODE`, text; fails for everything else: that is no answer of the gate.
answer() {
  case $reply in
    'fabric 0') exit 0 ;;
    "fabric 0$newline"* | "fabric 0 ticket$newline"*)
      printf '%s\n' "${reply#*"$newline"}"
      exit 0
      ;;
    "fabric 2$newline"?*)
      printf '%s\n' "${reply#*"$newline"}" >&2
      exit 2
      ;;
  esac
}

read_settings() {
  { IFS= read -r url <"$dir/url" && IFS= read -r token <"$dir/token" && read -r gate_s observe_s wait_s <"$dir/deadlines"; } \
    2>/dev/null || return 1
  case $url$token$hash in *[!A-Za-z0-9._~:/@%+=-]*) return 1 ;; esac
  [ -n "$url" ] && [ -n "$token" ] && [ -n "$observe_s" ]
}

gate() {
  read_settings || refuse "the hook's settings in $dir cannot be read"
  set -- "$spool"/*.json
  [ ! -f "$1" ] || deliver_first
  if [ "${wait_s:-0}" -gt 0 ] 2>/dev/null; then ask_and_wait; else send - "$gate_s"; fi
  [ "$sent" -eq 0 ] || refuse "the policy gate did not answer (curl $sent)"
  answer
  refuse 'what answered is not the policy gate'
}

# What came back from earlier calls may bear on this one: it is told before this is asked, or nothing is.
deliver_first() {
  patience=3
  while :; do
    drain
    drained=$?
    set -- "$spool"/*.json
    [ -f "$1" ] || return 0
    # 1: another hook is at it.
    if [ "$drained" -eq 1 ] && [ "$patience" -gt 0 ]; then
      patience=$((patience - 1))
      sleep 1
    elif [ "$drained" -ne 0 ]; then
      refuse "reports of earlier calls in $spool could not be delivered"
    fi
  done
}

# A poll that fails decides nothing: the ticket that was read last stays the answer.
ask_and_wait() {
  form='text/x-fabric-hook; wait=1'
  # One that was killed could not take its payload away; none waits so long.
  find "$dir" -name '.asked-*' -mmin +15 -exec rm -f {} + 2>/dev/null
  body=$dir/.asked-$$
  trap 'rm -f "$body"' EXIT
  trap 'exit 2' HUP INT TERM
  cat >"$body" || refuse 'the payload could not be kept'
  send "$body" "$gate_s"
  until=$(($(date +%s) + wait_s))
  while case $sent$reply in "0fabric 0 ticket$newline"*) [ "$(date +%s)" -lt "$until" ] ;; *) false ;; esac do
    ticket=$reply
    sleep 1
    send "$body" "$gate_s"
    case $sent$reply in '0fabric '[02]*) ;; *) sent=0 reply=$ticket ;; esac
  done
}

# Whether the gate took what was told. One that does not know who speaks took nothing: a token is renewed, a report is not.
taken() {
  case $sent$reply in
    "0fabric 2$newline"TOKEN_* | "0fabric 2$newline"ROLE_* | "0fabric 2$newline"TENANT_*) return 1 ;;
    '0fabric '*) return 0 ;;
  esac
  return 1
}

# What waits goes first-in first-out, one hook at a time. 1: another hook is at it; 2: the gate takes nothing.
drain() {
  # One that was killed left its mark, and perhaps the payload that it was about to send.
  find "$spool" -name .draining -mmin +2 -exec rmdir {} + 2>/dev/null
  find "$spool" -name '.new-*' -mmin +2 -exec sh -c 'mv "$1" "${1%/*}/0${1##*/.new}.json"' sh {} \; 2>/dev/null
  mkdir "$spool/.draining" 2>/dev/null || return 1
  left=$drain_max_files
  ended=0
  for waiting in "$spool"/*.json; do
    [ -f "$waiting" ] && [ "$left" -gt 0 ] || break
    left=$((left - 1))
    send "$waiting" "$observe_s"
    if ! taken; then
      ended=2
      break
    fi
    rm -f "$waiting"
  done
  rmdir "$spool/.draining"
  return $ended
}

# A payload is on disk before it is sent, so that a shim that is killed loses nothing.
keep() {
  set -- "$spool"/*.json
  size=$(du -sk "$spool" 2>/dev/null) || size=0
  if [ $# -ge "$spool_max_files" ] || [ "${size%%[!0-9]*}" -ge "$spool_max_kib" ]; then
    rm -f "$body"
    echo lost >>"$spool/lost"
  else
    mv "$body" "$spool/$(date +%s)-$$.json"
  fi
}

observe() {
  [ -d "$spool" ] || mkdir "$spool" || exit 0
  body=$spool/.new-$$
  cat >"$body" || exit 0
  if read_settings; then
    send "$body" "$observe_s"
    if taken; then
      rm -f "$body"
      said=$reply
      set -- "$spool"/*.json
      [ -f "$1" ] && drain
      case $said in "fabric 0$newline"*) printf '%s\n' "${said#*"$newline"}" ;; esac
      exit 0
    fi
  fi
  keep
  exit 0
}

case $mode in
  gate) gate ;;
  observe) observe ;;
  *) refuse "the hook was called as \`$mode\`, which is neither gate nor observe" ;;
esac
