<?php
session_start();
$_SESSION['visits'] = ($_SESSION['visits'] ?? 0) + 1;
echo posix_getuid(), ' ', $_SESSION['visits'], ' ', ini_get('session.gc_probability');
