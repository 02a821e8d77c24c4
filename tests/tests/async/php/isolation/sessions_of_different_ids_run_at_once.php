<?php
session_start();
$_SESSION['m'] = $m;
$_SESSION['n'] = ($_SESSION['n'] ?? 0) + 1;
meet('with open sessions');
echo $_SESSION['m'], session_status() === PHP_SESSION_ACTIVE ? '' : 'closed';
