//! Apache's names without an implementation here: modules that count as loaded, directives without effect, and
//! directives that are not allowed in `.htaccess` files.

/// Modules that `<IfModule>` finds, by their identifier (`rewrite_module`) without its suffix: modules whose directives
/// are implemented or have no effect.
const MODULES: &[&str] = &[
    "access_compat",
    "alias",
    "auth_basic",
    "authn_core",
    "authn_file",
    "authz_core",
    "authz_host",
    "authz_user",
    "autoindex",
    "brotli",
    "core",
    "deflate",
    "dir",
    "env",
    "expires",
    "filter",
    "headers",
    "http",
    "mime",
    "negotiation",
    "php",
    "rewrite",
    "setenvif",
    "so",
    "ssl",
    "version",
];

/// `true` if `<IfModule name>` holds. Modules are found by their source file (`mod_rewrite.c`) and by their identifier
/// (`rewrite_module`), spelled as in Apache.
pub(crate) fn has_module(name: &str) -> bool {
    let plain = match name {
        "core.c" => Some("core"),
        "http_core.c" => Some("http"),
        _ => name.strip_suffix("_module").or_else(|| name.strip_prefix("mod_")?.strip_suffix(".c")),
    };
    plain.is_some_and(|plain| MODULES.contains(&plain))
}

/// Methods that `<Limit>` may name; TRACE cannot be limited.
const METHODS: &[&str] = &[
    "GET",
    "HEAD",
    "PUT",
    "POST",
    "DELETE",
    "CONNECT",
    "OPTIONS",
    "PATCH",
    "PROPFIND",
    "PROPPATCH",
    "MKCOL",
    "COPY",
    "MOVE",
    "LOCK",
    "UNLOCK",
    "VERSION-CONTROL",
    "CHECKOUT",
    "UNCHECKOUT",
    "CHECKIN",
    "UPDATE",
    "LABEL",
    "REPORT",
    "MKWORKSPACE",
    "MKACTIVITY",
    "BASELINE-CONTROL",
    "MERGE",
];

/// `true` if `<Limit>` may name this method.
pub(crate) fn is_method(name: &str) -> bool {
    METHODS.contains(&name)
}

/// Directives that are accepted without effect, with the reason. In lower case.
pub(crate) const WITHOUT_EFFECT: &[(&str, &str)] = &[
    ("addalt", LISTING),
    ("addaltbyencoding", LISTING),
    ("addaltbytype", LISTING),
    ("adddescription", LISTING),
    ("addicon", LISTING),
    ("addiconbyencoding", LISTING),
    ("addiconbytype", LISTING),
    ("defaulticon", LISTING),
    ("headername", LISTING),
    ("indexheadinsert", LISTING),
    ("indexoptions", LISTING),
    ("indexorderdefault", LISTING),
    ("indexstylesheet", LISTING),
    ("readmename", LISTING),
    ("addoutputfilter", COMPRESSION),
    ("addoutputfilterbytype", COMPRESSION),
    ("setoutputfilter", COMPRESSION),
    ("addinputfilter", COMPRESSION),
    ("setinputfilter", COMPRESSION),
    ("removeoutputfilter", COMPRESSION),
    ("removeinputfilter", COMPRESSION),
    ("filterdeclare", COMPRESSION),
    ("filterprovider", COMPRESSION),
    ("filterchain", COMPRESSION),
    ("filterprotocol", COMPRESSION),
    ("addlanguage", LANGUAGE),
    ("defaultlanguage", LANGUAGE),
    ("languagepriority", LANGUAGE),
    ("forcelanguagepriority", LANGUAGE),
    ("removelanguage", LANGUAGE),
    ("multiviewsmatch", LANGUAGE),
    ("contentdigest", OWN),
    ("enablesendfile", OWN),
    ("enablemmap", OWN),
    ("serversignature", OWN),
    ("acceptpathinfo", OWN),
    ("checkspelling", OWN),
    ("checkcaseonly", OWN),
    ("directorycheckhandler", OWN),
    ("directoryindexredirect", OWN),
    ("authbasicauthoritative", OWN),
    ("authbasicprovider", OWN),
    ("authzsendforbiddenonfailure", OWN),
    ("cookietracking", OWN),
    ("qualifyredirecturl", OWN),
    ("aliaspreservepath", OWN),
    ("cgipassauth", "scripts always get the Authorization header"),
    ("cgivar", OWN),
    ("defaulttype", OWN),
    ("deflateinflatelimitrequestbody", COMPRESSION),
    ("deflateinflateratioburst", COMPRESSION),
    ("deflateinflateratiolimit", COMPRESSION),
    ("limitxmlrequestbody", OWN),
    ("logiotrackttfb", OWN),
    ("redirectrelative", "redirects always have absolute URLs"),
    ("rlimitcpu", OWN),
    ("rlimitmem", OWN),
    ("rlimitnproc", OWN),
    ("ssloptions", "scripts always get the TLS variables"),
];

const LISTING: &str = "the layout of directory listings cannot be changed";
const COMPRESSION: &str = "see `[compression]` in howdah.toml for compression";
const LANGUAGE: &str = "negotiation of languages is not supported";
const OWN: &str = "the server does not use this setting";

/// Returns the reason why a directive has no effect, if it has none. `name` is in lower case.
pub(crate) fn without_effect(name: &str) -> Option<&'static str> {
    WITHOUT_EFFECT.iter().find(|(known, _)| *known == name).map(|(_, why)| *why)
}

/// Directives of the server configuration, which Apache refuses in `.htaccess` files.
const SERVER_ONLY: &[&str] = &[
    "accessfilename",
    "alias",
    "aliasmatch",
    "allowoverride",
    "brotlicompressionquality",
    "cachenegotiateddocs",
    "customlog",
    "deflatecompressionlevel",
    "documentroot",
    "errorlog",
    "hostnamelookups",
    "include",
    "includeoptional",
    "keepalive",
    "limitrequestfields",
    "listen",
    "loadmodule",
    "loglevel",
    "modmimeusepathinfo",
    "php_admin_flag",
    "php_admin_value",
    "proxypass",
    "proxypassmatch",
    "proxypassreverse",
    "regexdefaultoptions",
    "rewritelock",
    "rewritelog",
    "rewriteloglevel",
    "rewritemap",
    "scriptalias",
    "scriptaliasmatch",
    "serveradmin",
    "serveralias",
    "servername",
    "serverroot",
    "servertokens",
    "sslengine",
    "timeout",
    "traceenable",
    "usecanonicalname",
    "user",
    "group",
];

/// `true` if a directive, in lower case, is allowed only in the server configuration.
pub(crate) fn is_server_only(name: &str) -> bool {
    SERVER_ONLY.contains(&name)
}

/// `true` if a section's tag is allowed only in the server configuration.
pub(crate) fn is_server_only_section(name: &str) -> bool {
    let known =
        ["directory", "directorymatch", "location", "locationmatch", "virtualhost", "proxy", "proxymatch", "macro"];
    known.contains(&name)
}
