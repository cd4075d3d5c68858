#!/usr/bin/env python3
"""Make the small stub libraries that let the Mesos 1.11.0 library load.

The library (the `_scheduler.so` of the PyPI package mesos.scheduler 1.11.0)
was built on Ubuntu 16.04 and wants shared libraries that Debian 12 has not
got, or has with other symbol versions: OpenSSL 1.0, a libcurl with version
CURL_OPENSSL_3, and Python 2.  None of them is needed to run a plain-HTTP
cluster, so each is replaced by a stub that defines the wanted symbols with
the wanted versions.  A stub function returns 0; the first call of one that is
not known to be harmless prints a line to stderr, so that a feature which
needs the real library fails loudly, not silently.

libsvn and libapr are stubbed too: Mesos uses them only for binary diffs in
the replicated log, which neither mesos-master nor we switch on.

usage: mkstubs.py LIBRARY OUTPUT_FOLDER       (needs nm, readelf and gcc)
"""
import os
import re
import subprocess
import sys

# soname -> regular expression for the symbols of a library whose symbols
# carry no version; None where the version names in the ELF file tell.
STUBS = {
    "libssl.so.1.0.0": None,
    "libcrypto.so.1.0.0": None,
    "libcurl.so.4": None,
    "libapr-1.so.0": r"apr_",
    "libsvn_subr-1.so.1": r"svn_(err|pool|string|stream_from|stream_write)",
    "libsvn_delta-1.so.1": r"svn_tx",
    "libpython2stub.so": r"_?Py",
}
# Real libraries are preferred for these; stubbed only if the system lacks them.
OPTIONAL = {"libsasl2.so.2": r"sasl_"}

# Python 2's variables (everything else is a function).
DATA = {"PyExc_Exception", "PyExc_TypeError", "_Py_NoneStruct"}

# Called while Mesos starts, with no harm done when they do nothing.
QUIET = {"SSL_library_init", "SSL_load_error_strings", "RAND_poll",
         "OPENSSL_add_all_algorithms_noconf", "ERR_clear_error",
         "CRYPTO_num_locks", "CRYPTO_set_id_callback",
         "CRYPTO_set_locking_callback", "CRYPTO_set_dynlock_create_callback",
         "CRYPTO_set_dynlock_lock_callback",
         "CRYPTO_set_dynlock_destroy_callback",
         "curl_global_init", "apr_initialize", "apr_terminate",
         "svn_pool_create_ex", "apr_pool_destroy"}


def run(*argv):
    return subprocess.run(argv, check=True, stdout=subprocess.PIPE,
                          universal_newlines=True).stdout


def undefined(library):
    """The undefined dynamic symbols: a list of (name, version or '')."""
    found = []
    for line in run("nm", "-D", "--undefined-only", library).splitlines():
        name, _, version = line.split()[-1].partition("@")
        found.append((name, version.lstrip("@")))
    return found


def versions(library):
    """{version name: soname that is to supply it}, from .gnu.version_r."""
    table, soname = {}, None
    for line in run("readelf", "-VW", library).splitlines():
        got = re.search(r"Version: 1\s+File: (\S+)", line)
        if got:
            soname = got.group(1)
        got = re.search(r"^\s+0x\w+:\s+Name: (\S+)\s+Flags:", line)
        if got and soname:
            table.setdefault((soname, got.group(1)), soname)
    return table


def has_system_library(soname):
    return re.search(r"^\s*%s " % re.escape(soname),
                     run("/sbin/ldconfig", "-p"), re.M) is not None


def source(soname, symbols):
    lines = ["/* Made by mkstubs.py: stub of %s. */" % soname,
             "#include <stdio.h>",
             "static void told(const char *name, char *once) {",
             "  if (*once) return; *once = 1;",
             '  fprintf(stderr, "mesos: stub of %s called: %%s\\n",'
             " name);" % soname,
             "}"]
    for name, _ in symbols:
        if name in DATA:
            lines.append("char %s[512] __attribute__((aligned(16)));" % name)
        elif name in QUIET:
            lines.append("long %s(void) { return 0; }" % name)
        else:
            lines.append('long %s(void) { static char once;'
                         ' told("%s", &once); return 0; }' % (name, name))
    return "\n".join(lines) + "\n"


def version_script(symbols):
    by_version = {}
    for name, version in symbols:
        by_version.setdefault(version, []).append(name)
    return "".join("%s { global: %s; };\n" % (v, "; ".join(names))
                   for v, names in sorted(by_version.items()) if v)


def main():
    library, folder = sys.argv[1:]
    os.makedirs(folder, exist_ok=True)
    wanted = undefined(library)
    suppliers = versions(library)
    # Two libraries can ask for the same version name (libssl and libcrypto
    # both do), and nm does not say which: SSL_*, TLS* go to libssl.
    stubs = dict(STUBS)
    for soname, pattern in OPTIONAL.items():
        if not has_system_library(soname):
            stubs[soname] = None
            print("mkstubs: no %s here, so it is stubbed" % soname)
    for soname, pattern in stubs.items():
        if pattern is not None:
            mine = [s for s in wanted if not s[1] and re.match(pattern, s[0])]
        else:
            mine = [s for s in wanted if (soname, s[1]) in suppliers]
            if soname.startswith(("libssl", "libcrypto")):
                to_ssl = soname.startswith("libssl")
                mine = [s for s in mine
                        if bool(re.match(r"SSL|TLS", s[0])) == to_ssl]
        if not mine:
            sys.exit("mkstubs: found no symbols for %s" % soname)
        base = os.path.join(folder, soname)
        with open(base + ".c", "w") as out:
            out.write(source(soname, mine))
        argv = ["gcc", "-shared", "-fPIC", "-O1", "-w", "-fno-builtin",
                "-Wl,-soname," + soname, "-o", base, base + ".c"]
        script = version_script(mine)
        if script:
            with open(base + ".map", "w") as out:
                out.write(script)
            argv.append("-Wl,--version-script," + base + ".map")
        subprocess.run(argv, check=True)
        os.unlink(base + ".c")
        if script:
            os.unlink(base + ".map")
        print("mkstubs: %s: %d symbols" % (soname, len(mine)))


main()
