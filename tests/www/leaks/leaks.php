<?php
/*
 * Everything that a script can leave behind, by name: state of the language, of its libraries and of the process. The names before
 * `ENDS` let the script go on; the others end it, each in its own way.
 */

return [
    'global' => static function (): void {
        $GLOBALS['plain'] = str_repeat('x', 3000);
        $GLOBALS['made'] = [1, 2, 3];
    },
    'static' => static function (): void {
        Singleton::$count++;
        Singleton::$list[] = str_repeat('s', 100);
        UsesTrait::$counted += 5;
        echo counter(), counter(), Suit::visits(), $GLOBALS['closure']();
    },
    'singleton' => static function (): void {
        Singleton::instance()->seen[] = $_SERVER['REQUEST_URI'];
    },
    'pointer' => static function (): void {
        next($GLOBALS['pointer']);
        $GLOBALS['pointer'][] = 'more';
        $GLOBALS['generator']->next();
    },
    'fiber' => static function (): void {
        $GLOBALS['fiberValue'] = $GLOBALS['fiber']->resume();
        $GLOBALS['suspended'] = new Fiber(static function (): void {
            try {
                Fiber::suspend(str_repeat('f', 50000));
            } finally {
                echo '[fiber ended]';
            }
        });
        $GLOBALS['suspended']->start();
    },
    'generator' => static function (): void {
        $GLOBALS['unfinished'] = (static function (): Generator {
            try {
                yield 1;
                yield 2;
            } finally {
                echo '[generator ended]';
            }
        })();
        $GLOBALS['unfinished']->current();
    },
    'weak' => static function (): void {
        $GLOBALS['key'] = new stdClass();
        $GLOBALS['weak'][$GLOBALS['key']] = 1;
        $GLOBALS['storage'][$GLOBALS['key']] = 2;
    },
    'libraries' => static function (): void {
        $GLOBALS['document']->documentElement->appendChild($GLOBALS['document']->createElement('leak', str_repeat('d', 5000)));
        $GLOBALS['simple']->addChild('leak', 'x');
        $GLOBALS['database']?->exec('INSERT INTO t VALUES (1), (2)');
    },
    'files' => static function (): void {
        fgets($GLOBALS['file']);
        fwrite($GLOBALS['memory'], 'more');
        $GLOBALS['opened'] = [fopen(__FILE__, 'r'), tmpfile(), fopen('php://temp/maxmemory:1', 'w+'), stream_socket_pair(STREAM_PF_UNIX, STREAM_SOCK_STREAM, 0), opendir(__DIR__)];
        fwrite($GLOBALS['opened'][2], 'spilled');
    },
    'close' => static function (): void {
        fclose($GLOBALS['file']);
        fclose($GLOBALS['memory']);
    },
    'ini' => static function (): void {
        ini_set('precision', '3');
        ini_set('memory_limit', '300M');
        ini_set('session.name', 'OTHER');
        ini_set('default_mimetype', 'text/plain');
        ini_set('error_log', '/dev/null');
        set_include_path('/nowhere');
        set_time_limit(77);
        error_reporting(E_ERROR);
    },
    'environment' => static function (): void {
        putenv('LEAK=1');
        putenv('BOOTED=2');
        putenv('PATH');
        putenv('TZ=Asia/Tokyo');
    },
    'directory' => static function (): void {
        chdir('/');
        umask(0077);
    },
    'locale' => static function (): void {
        setlocale(LC_ALL, 'C.UTF-8');
        if (class_exists('Locale')) {
            Locale::setDefault('de_DE');
        }
        if (function_exists('textdomain')) {
            textdomain('leak');
        }
    },
    'zone' => static function (): void {
        date_default_timezone_set('Asia/Tokyo');
    },
    'multibyte' => static function (): void {
        mb_internal_encoding('ISO-8859-1');
        mb_substitute_character(0x3013);
        mb_language('Japanese');
        mb_http_output('EUC-JP');
        mb_detect_order(['ASCII']);
        mb_regex_encoding('EUC-JP');
    },
    'constants' => static function (): void {
        define('LEAKED', [1, 2]);
    },
    'classes' => static function (): void {
        eval('class Leaked { public static $n = 1; } function leaked() { static $n = 0; return ++$n; } interface Leaking {}');
        class_alias('Leaked', 'LeakedToo');
        echo leaked();
        $GLOBALS['anonymous'] = new class() extends Leaked {
        };
    },
    'include' => static function (): void {
        require_once __DIR__ . '/late.php';
        echo late();
    },
    'autoload' => static function (): void {
        spl_autoload_register(static function (string $class): void {
            echo "[autoload $class]";
        });
        spl_autoload_extensions('.leak');
        class_exists('Nowhere');
    },
    'wrapper' => static function (): void {
        stream_wrapper_register('leak', 'Wrapper');
        stream_wrapper_unregister('http');
        stream_wrapper_unregister('file');
        stream_wrapper_restore('file');
    },
    'filter' => static function (): void {
        stream_filter_register('leak.upper', 'Upper');
        stream_filter_append($GLOBALS['memory'], 'leak.upper');
    },
    'context' => static function (): void {
        stream_context_set_default(['http' => ['user_agent' => 'leak']]);
        libxml_use_internal_errors(true);
        simplexml_load_string('<broken');
        libxml_set_external_entity_loader(static fn () => null);
    },
    'errors' => static function (): void {
        set_error_handler(static function (int $number, string $text): bool {
            echo "[error $text]";

            return true;
        });
        echo $undefined;
        set_error_handler(static fn () => false);
    },
    'last' => static function (): void {
        @trigger_error('left behind');
        json_decode('{');
        preg_match('/(?:\D+|<\d+>)*[!?]/', 'foobar foobar foobar');
        openssl_pkey_get_private('no key');
        strtok('one two three', ' ');
    },
    'exceptions' => static function (): void {
        set_exception_handler(static function (Throwable $thrown): void {
            echo '[handled ', $thrown->getMessage(), ']';
        });
    },
    'buffers' => static function (): void {
        ob_start(static fn (string $text): string => "<$text>");
        echo 'in the first';
        ob_start();
        echo 'in the second';
        output_add_rewrite_var('leak', '1');
    },
    'headers' => static function (): void {
        header('X-Leak: 1');
        header('X-Leak: 2', false);
        setcookie('leak', 'yes');
        header_register_callback(static function (): void {
            header('X-Late: 1');
        });
        http_response_code(418);
    },
    'shutdown' => static function (): void {
        register_shutdown_function(static function (): void {
            echo '[shutdown]';
            register_shutdown_function(static function (): void {
                echo '[shutdown in shutdown]';
            });
        });
        $GLOBALS['mine'] = new Destructed('mine');
        $GLOBALS['cycle'] = new Destructed('cycle');
        $GLOBALS['cycle']->self = $GLOBALS['cycle'];
        register_tick_function(static fn () => null);
    },
    'session' => static function (): void {
        session_name('LEAKSESSION');
        session_id('leak1');
        session_cache_limiter('public');
        session_set_cookie_params(77, '/leak');
        session_start();
        $_SESSION['leak'] = 1;
    },
    'session handler' => static function (): void {
        session_set_save_handler(new class() extends SessionHandler {
        }, true);
        session_id('leak2');
        session_start();
        $_SESSION['n'] = ['left' => true];
    },
    'signals' => static function (): void {
        pcntl_signal(SIGUSR1, static function (): void {
            echo '[signal]';
        });
        pcntl_signal(SIGALRM, static fn () => null);
        pcntl_async_signals(true);
        posix_kill(posix_getpid(), SIGUSR1);
    },
    'mask' => static function (): void {
        pcntl_sigprocmask(SIG_BLOCK, [SIGUSR2, SIGWINCH]);
        posix_kill(posix_getpid(), SIGUSR2);
        pcntl_signal(SIGHUP, SIG_IGN);
    },
    'alarm' => static function (): void {
        pcntl_alarm(600);
    },
    'children' => static function (): void {
        $GLOBALS['child'] = proc_open(['true'], [], $pipes);
        $GLOBALS['pipe'] = popen('echo child', 'r');
        echo fgets($GLOBALS['pipe']);
        $pid = pcntl_fork();
        if ($pid === 0) {
            posix_kill(posix_getpid(), SIGKILL);
        }
        $GLOBALS['pid'] = $pid;
    },
    'random' => static function (): void {
        mt_srand(5);
        echo mt_rand(), ' ', rand();
        srand(7);
    },
    'gc' => static function (): void {
        gc_disable();
        for ($i = 0; $i < 3000; $i++) {
            $object = new stdClass();
            $object->self = $object;
        }
    },
    'memory' => static function (): void {
        $GLOBALS['large'] = [str_repeat('x', 9 << 20), range(1, 50000), new SplFixedArray(70000)];
    },
    'patterns' => static function (): void {
        for ($i = 0; $i < 40; $i++) {
            preg_match("/(a+)b{0,$i}\\w*/u", 'aaab');
        }
        mb_ereg('a+', 'aab');
    },
    'recursion' => static function (): void {
        $deep = static function (int $n) use (&$deep): int {
            return $n === 0 ? 0 : array_sum(array_map($deep, [$n - 1])) + 1;
        };
        echo $deep(2000);
        echo strlen(json_encode(array_reduce(range(1, 400), static fn ($inner) => [$inner], 1)));
    },
    'input' => static function (): void {
        $_GET['leak'] = $_POST['leak'] = $_COOKIE['leak'] = $_SERVER['leak'] = $_ENV['leak'] = $_REQUEST['leak'] = 'x';
        $GLOBALS['stream'] = fopen('php://input', 'r');
    },
    'late' => static function (): void {
        fastcgi_finish_request();
        Singleton::$count = 1000;
        putenv('LEAK=late');
    },
    'ENDS' => null,
    'exit' => static function (): void {
        exit('bye');
    },
    'exit status' => static function (): void {
        http_response_code(503);
        exit(3);
    },
    'throw' => static function (): void {
        throw new RuntimeException('thrown');
    },
    'fatal' => static function (): void {
        no_such_function();
    },
    'user error' => static function (): void {
        trigger_error('raised', E_USER_ERROR);
    },
    'compile' => static function (): void {
        eval('class Twice { function f() {} function f() {} }');
    },
    'parse' => static function (): void {
        eval('this is no PHP');
    },
    'exit in buffer' => static function (): void {
        ob_start(static function (string $text): string {
            exit('never');
        });
        echo 'text';
    },
    'exit in shutdown' => static function (): void {
        register_shutdown_function(static function (): void {
            exit('left in shutdown');
        });
        register_shutdown_function(static function (): void {
            echo 'not reached';
        });
    },
    'exit in destructor' => static function (): void {
        $GLOBALS['leaving'] = new class() {
            public function __destruct()
            {
                exit('left in destructor');
            }
        };
        exit('first');
    },
    'throw in shutdown' => static function (): void {
        register_shutdown_function(static function (): void {
            throw new LogicException('in shutdown');
        });
    },
    'throw in destructor' => static function (): void {
        $GLOBALS['throwing'] = new class() {
            public function __destruct()
            {
                throw new LogicException('in destructor');
            }
        };
    },
    'exit in fiber' => static function (): void {
        (new Fiber(static function (): void {
            exit('left in a fiber');
        }))->start();
    },
    'fatal in fiber' => static function (): void {
        (new Fiber(static function (): void {
            eval('class Twice { function f() {} function f() {} }');
        }))->start();
    },
    'memory limit' => static function (): void {
        register_shutdown_function(static function (): void {
            echo '[', error_get_last()['type'] ?? 'no error', ' in shutdown]';
        });
        ini_set('memory_limit', '24M');
        $list = [];
        while (true) {
            $list[] = str_repeat('m', 100000);
        }
    },
    'memory limit at once' => static function (): void {
        register_shutdown_function(static function (): void {
            echo '[shutdown after it]';
        });
        str_repeat('x', 1 << 30);
    },
    'endless recursion' => static function (): void {
        ini_set('memory_limit', '24M');
        $endless = static function () use (&$endless): void {
            $endless();
        };
        $endless();
    },
    'time limit' => static function (): void {
        register_shutdown_function(static function (): void {
            echo '[shutdown after it]';
        });
        set_time_limit(1);
        while (true) {
            $x = 1;
        }
    },
];
