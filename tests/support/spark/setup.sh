# What the programs here share: where Spark is, and how a JVM is started for it. To be sourced, with `here` and `dir`
# set; after `set_up`, `dir` is an absolute path, and SPARK_HOME, `venv` and `java_options` are there.

# The release that all of this was tried with. The plug-in is tried with others, too.
PYSPARK=3.5.9

give_up() { echo "${0##*/}: $*" >&2; exit 2; }

# Whether somebody listens on a port of this machine.
listens() { (: > "/dev/tcp/127.0.0.1/$1") 2> /dev/null; }

# Waits for up to 30 s until somebody listens on a port.
await_port() {
  local tries
  for ((tries = 0; tries < 300; tries++)); do
    listens "$1" && return 0
    sleep 0.1
  done
  return 1
}

spark_home() { ls -d "$venv"/lib/python3*/site-packages/pyspark 2> /dev/null | head -n 1; }
is_installed() { ls "$(spark_home)"/jars/spark-core_*-"$PYSPARK".jar > /dev/null 2>&1; }

# Spark touches parts of Java 17 that are closed by default.
openings() {
  local package
  echo -n "-XX:+IgnoreUnrecognizedVMOptions"
  echo -n " --add-opens=java.security.jgss/sun.security.krb5=ALL-UNNAMED"
  for package in java.lang java.lang.invoke java.lang.reflect java.io java.net java.nio java.util \
    java.util.concurrent java.util.concurrent.atomic sun.nio.ch sun.nio.cs sun.security.action sun.util.calendar; do
    echo -n " --add-opens=java.base/$package=ALL-UNNAMED"
  done
}

set_up() {
  command -v java > /dev/null || give_up "java is missing (Debian: openjdk-17-jre-headless)"
  mkdir -p "$dir" || give_up "cannot make $dir"
  dir=$(cd "$dir" && pwd)
  venv=$dir/venv
  [ "$PYSPARK" = 3.5.9 ] || venv=$dir/venv-$PYSPARK
  if ! is_installed; then
    echo "${0##*/}: installing pyspark $PYSPARK, once" >&2
    # One at a time, and all or nothing.
    (
      flock 9
      is_installed && exit 0
      rm -rf "$venv" "$venv.new"
      python3 -m venv "$venv.new" && "$venv.new/bin/pip" install -q "pyspark==$PYSPARK" && mv "$venv.new" "$venv"
    ) 9> "$dir/lock" > "$dir/install.log" 2>&1 || {
      tail -n 5 "$dir/install.log" >&2
      give_up "pyspark could not be installed; the whole story is in $dir/install.log"
    }
  fi
  SPARK_HOME=$(spark_home)
  java_options=$(openings)
  export SPARK_LOCAL_IP=127.0.0.1 SPARK_LOCAL_HOSTNAME=127.0.0.1
  unset SPARK_EXECUTOR_URI SPARK_TESTING
  # Spark's own settings of this machine, if it has any, are none of ours.
  unset SPARK_CONF_DIR
}

# Compiles the Scala programs of a folder of these, once, with the compiler that the package has; what is compiled
# depends on them alone. `classes` is where they are afterwards.
compile_scala() {
  classes=$dir/$1-$(cat "$here/$2"/*.scala | sha256sum | cut -c 1-16)
  [ ! -d "$classes" ] || return 0
  rm -rf "$classes.new"
  mkdir -p "$classes.new"
  java -cp "$SPARK_HOME/jars/*" scala.tools.nsc.Main -nowarn -d "$classes.new" \
    -cp "$(printf '%s:' "$SPARK_HOME"/jars/*.jar)" "$here/$2"/*.scala || give_up "the asking program doesn't compile"
  mv "$classes.new" "$classes"
}

# Runs a compiled program with these arguments; the end of its log is shown if it fails.
ask() {
  local program=$1 log=$dir/${0##*/}.log
  shift
  # shellcheck disable=SC2086
  java $java_options -Xmx512m -cp "$classes:$SPARK_HOME/jars/*" "$program" "$@" > "$log" 2>&1 ||
    { grep -v ' INFO \| WARN ' "$log" | tail -n 20 >&2; give_up "Spark could not be asked; its log is $log"; }
}

# A small JVM with Spark's classes, in place of this process.
exec_jvm() {
  set -f
  # shellcheck disable=SC2086
  exec java $java_options -Xmx256m -cp "$SPARK_HOME/jars/*" "$@"
}
