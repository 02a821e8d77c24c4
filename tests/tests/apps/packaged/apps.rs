//! The applications: their paths, their configuration for Apache, and known differences with reasons.

use super::compare::ServerPair;
use super::visits;
use std::path::Path;

/// Differences between any two runs of MediaWiki, after those given.
macro_rules! mediawiki_rules {
    ($($more:expr),*) => {
        &[
            $($more,)*
            (r"[0-9a-f]{32,40}(\+|\\)", "<token>"),
            (r#""wgRequestId":"[^"]*""#, "<id>"),
            (r"\b[0-9a-f]{24,40}\b", "<hash>"),
            (r#""wgBackendResponseTime":\d+"#, "<time>"),
            (r"\b20\d{12}\b", "<time>"),
            (r#""(cputime|walltime|cachereport|timestamp|scribunto)[^,}]*"#, "<cost>"),
            (r#""timingprofile":\[[^\]]*\]"#, "<cost>"),
            (r#"\["(mediawiki\.base|startup)","[0-9a-z]{5}""#, "<module>"),
            (r"(?s)<!-- \nNewPP.*?-->", "<parser>"),
            (r"(?s)<!--\s*Saved in.*?-->", "<saved>"),
        ]
    };
}
pub(crate) use mediawiki_rules;

pub(crate) struct App {
    pub(crate) name: &'static str,
    pub(crate) preset: &'static str,
    /// Its path on the site `localhost`.
    pub(crate) path: &'static str,
    pub(crate) root: &'static str,
    /// The package's configuration for Apache.
    pub(crate) configuration: &'static str,
    /// Keys of the rule in addition to `app`.
    pub(crate) settings: &'static str,
    /// Paths that the configuration refuses by a pattern.
    pub(crate) refused: &'static [&'static str],
    /// Methods that are refused.
    pub(crate) methods: &'static [(&'static str, &'static str)],
    /// Files that Apache serves with the packaged configuration, and the preset does not: a pattern and the reason.
    pub(crate) stricter: &'static [(&'static str, &'static str)],
    /// Other differences: a pattern of the message and the reason.
    pub(crate) differs: &'static [(&'static str, &'static str)],
    /// Differences between any two runs.
    pub(crate) rules: &'static [(&'static str, &'static str)],
    pub(crate) visit: fn(&mut ServerPair<'_>),
}

impl App {
    /// True if its package is present; each package has the application's name.
    pub(crate) fn is_packaged(&self) -> bool {
        Path::new("/usr/share/doc").join(self.name).exists()
    }
}

const NONE: App = App {
    name: "",
    preset: "",
    path: "",
    root: "",
    configuration: "",
    settings: "",
    refused: &[],
    methods: &[],
    stricter: &[],
    differs: &[],
    rules: &[],
    visit: |_| (),
};

pub(crate) const APPS: &[App] = &[
    App {
        name: "mediawiki",
        preset: "mediawiki",
        path: "/mediawiki",
        root: "/var/lib/mediawiki",
        configuration: "/etc/apache2/conf-available/mediawiki.conf",
        stricter: &[(
            r"(^|/)(composer\.(json|lock)|installed\.json)$|^/extensions/\w+/maintenance/",
            "reveals what could be attacked, and is for administrators",
        )],
        visit: visits::mediawiki,
        rules: mediawiki_rules![("fpm-fcgi|apache2handler", "<sapi>")],
        ..NONE
    },
    App {
        name: "phpmyadmin",
        preset: "phpmyadmin",
        path: "/phpmyadmin",
        root: "/usr/share/phpmyadmin",
        configuration: "/etc/phpmyadmin/apache.conf",
        stricter: &[(r"^/sql/", "is for the installation")],
        visit: visits::phpmyadmin,
        rules: &[
            (r"took [0-9.]+ seconds", "<took>"),
            (r"\b[0-9a-f]{16,128}\b", "<token>"),
            (r"\d{8,10}", "<id>"),
            (r#"set_session" value="[^"]*""#, "<session>"),
            (r"[0-9a-f]{16,128}", "<token>"),
            (r"token=[^&;]*", "<token>"),
            (r"Apache/[0-9.]+ \(Debian\)", "<server>"),
            (r"[Hh]owdah(/[0-9.]+)?", "<server>"),
        ],
        ..NONE
    },
    App {
        name: "roundcube",
        preset: "roundcube",
        path: "/roundcube",
        root: "/var/lib/roundcube/public_html",
        configuration: "/etc/roundcube/apache.conf",
        refused: &["/README.md", "/config/config.inc.php", "/skins/elastic/meta.json"],
        stricter: &[(r"config\.inc\.php\.dist$", "tells what could be attacked")],
        visit: visits::roundcube,
        rules: &[(r#"(request_token":"|_token" value=")[A-Za-z0-9]+"#, "<token>")],
        ..NONE
    },
    App {
        name: "cacti",
        preset: "cacti",
        path: "/cacti",
        root: "/usr/share/cacti/site",
        configuration: "/etc/apache2/conf-available/cacti.conf",
        stricter: &[
            (r"^/include/config\.php\.dist$", "tells what could be attacked"),
            (r"^/log/", "is for administrators, who read it in the application"),
            (r"^/resource/", "is for the poller"),
        ],
        visit: visits::cacti,
        rules: &[(r"(;?(sid|ip|user|key):[0-9a-z]{1,40},\d+)+", "<token>")],
        ..NONE
    },
    App {
        name: "icingaweb2",
        preset: "icingaweb2",
        path: "/icingaweb2",
        root: "/usr/share/icingaweb2/public",
        configuration: "/etc/apache2/conf-available/icingaweb2.conf",
        visit: visits::icingaweb2,
        rules: &[
            (r#"value="\d+\|[0-9a-f]+""#, "<token>"),
            (r"[0-9a-f]{32,40}", "<hash>"),
            (r"\b(root|www-data)\b", "<user>"),
            (r"[A-Za-z]-[a-z]{12}\b", "<id>"),
        ],
        ..NONE
    },
    App {
        name: "adminer",
        preset: "adminer",
        path: "/adminer",
        root: "/etc/adminer",
        configuration: "/etc/apache2/conf-available/adminer.conf",
        visit: visits::adminer,
        rules: &[(r"\b\d+:\d+\b", "<token>"), (r"nonce-[A-Za-z0-9+/=]+", "<nonce>"), (r#"nonce="[^"]+""#, "<nonce>")],
        ..NONE
    },
    App {
        name: "phpldapadmin",
        preset: "phpldapadmin",
        path: "/phpldapadmin",
        root: "/usr/share/phpldapadmin/htdocs",
        configuration: "/etc/phpldapadmin/apache.conf",
        visit: visits::phpldapadmin,
        rules: &[(r"\b[0-9a-f]{13,40}\b", "<hash>")],
        ..NONE
    },
    App {
        name: "postfixadmin",
        preset: "postfixadmin",
        path: "/postfixadmin",
        root: "/usr/share/postfixadmin/public",
        configuration: "/etc/apache2/conf-available/postfixadmin.conf",
        visit: visits::postfixadmin,
        rules: &[(r"\b[0-9a-f]{32,64}\b", "<hash>")],
        ..NONE
    },
    App {
        name: "simplesamlphp",
        preset: "simplesamlphp",
        path: "/simplesamlphp",
        root: "/usr/share/simplesamlphp/www",
        configuration: "/etc/simplesamlphp/apache.conf",
        stricter: &[(r"/\.gitkeep$", "hidden files are not sent")],
        visit: visits::simplesamlphp,
        rules: &[(r"TR[0-9a-f]{8}", "<track>"), (r"_[0-9a-f]{32,64}", "<id>"), (r"\b[0-9a-f]{8,10}\b", "<track>")],
        ..NONE
    },
    App {
        name: "phpsysinfo",
        preset: "phpsysinfo",
        path: "/phpsysinfo",
        root: "/usr/share/phpsysinfo",
        configuration: "/etc/phpsysinfo/apache.conf",
        visit: visits::phpsysinfo,
        ..NONE
    },
    App {
        name: "shaarli",
        preset: "shaarli",
        path: "/shaarli",
        root: "/usr/share/shaarli",
        configuration: "/etc/apache2/conf-available/shaarli.conf",
        refused: &["/.git/config", "/vendor/autoload.php", "/doxygen/index.html"],
        methods: &[("PROPFIND", "/"), ("LOCK", "/index.php")],
        stricter: &[
            (r"^/plugins/.*\.meta$|/\.buildinfo$", "is for the application, or hidden"),
            (r"^/tpl/.*\.html$", "templates, which are not pages"),
        ],
        ..NONE
    },
    App {
        name: "dokuwiki",
        preset: "dokuwiki",
        path: "/dokuwiki",
        root: "/usr/share/dokuwiki",
        configuration: "/etc/apache2/conf-available/dokuwiki.conf",
        refused: &["/VERSION", "/.htaccess.dist"],
        stricter: &[(r"\.sql$", "is for tests"), (r"/\.travis\.yml$", "hidden files are not sent")],
        visit: visits::dokuwiki,
        rules: &[(r"\bDW[0-9a-f]{32}", "<login>"), (r"\b[0-9a-f]{32}\b", "<hash>"), (r"\btok=[0-9a-f]{6}\b", "<tok>")],
        ..NONE
    },
];
