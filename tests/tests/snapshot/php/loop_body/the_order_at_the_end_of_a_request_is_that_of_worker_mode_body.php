<?php
note('body ' . (session_status() === PHP_SESSION_ACTIVE ? 'session' : 'no session') . ' ' . ob_get_level()
    . ' ' . ($_GET['k'] ?? 'no get') . ' ' . json_encode(fastcgi_finish_request()) . ' ' . count($_SESSION ?? []));
mark('body');
